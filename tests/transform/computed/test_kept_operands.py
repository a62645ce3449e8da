"""Products whose factors are put together of several reads: with these kept, as contractions of what they were."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import Affine, Expr, Fold, Load, Number, Op, Quotient, affine, distinct
from fsr.computation.interpret import interpret
from fsr.expressions import evaluate_int
from fsr.transform.computed.kept_operands import operands_kept
from fsr.transform.computed.magnitude import holds
from fsr.transform.sizes import always
from tests.transform.computed.test_families import FAMILY, at, computed
from tests.transform.conftest import subject_of

BITS = {"whole": ("w", "int8", 1), "nibbles": ("q", "uint8", 2)}
SIZES = {"m": 5, "n": 6, "g": 3}


def number(*terms: tuple[str, int], constant: int = 0) -> Number:
    return Number(Affine(tuple(sorted((n, k) for n, k in terms if k)), constant), "int64")


def cast(e: Expr, dtype: str = "float32") -> Expr:
    return Op(dtype, (e,))


class Form:
    """A product of matrices, one of which is put together: ``group`` terms of the sum have a scale of their own."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.bits = chance.choice(list(BITS))
        self.group = chance.choice([4, 8])
        self.nested = chance.random() < 0.5  # a sum over a group within one over the groups
        self.halves = chance.random() < 0.5  # of a group, not of each pair
        self.across = chance.random() < 0.5
        self.scaled = chance.choice(["group", "column", "both", "group"])
        self.dtype = chance.choice(["float16", "bfloat16", "float32"])
        self.zero = chance.random() < 0.5
        self.terms = BITS[self.bits][2]
        self.each = self.group // self.terms  # turns of the sum within a group

    def computation(self) -> Computation:
        terms = [self._sum(p) for p in range(self.terms)]
        if self.nested:
            inner = terms[0] if len(terms) == 1 else Op("sum", tuple(terms))
            factors = (inner, *self._scales(at("g0")[0]))
            value: Expr = Fold("sum", (("g0", affine("g")),), Op("prod", factors) if len(factors) > 1 else inner)
        else:
            value = terms[0] if len(terms) == 1 else Op("sum", tuple(terms))
        if self.scaled in ("column", "both"):
            value = Op("prod", (value, Load("column", at("j"), "float32")))
        return Computation(
            ("m", "n", "g"), self._buffers(), (Statement("map", "y", self._domain(), value, at("i", "j")),)
        )

    def _domain(self):
        return (("i", "m"), ("j", "n"))

    def _buffers(self) -> tuple[Buffer, ...]:
        name, dtype, terms = BITS[self.bits]
        depth, packed = f"{self.group} * g", f"{self.group // terms} * g"
        shape = (packed, "n") if self.across else ("n", packed)
        return (
            Buffer("a", self.dtype, ("m", depth)), Buffer(name, dtype, shape), Buffer("scale", "float16", ("n", "g")),
            Buffer("column", "float32", ("n",)), Buffer("y", "bfloat16", ("m", "n")),
        )  # fmt: skip

    def _sum(self, part: int) -> Expr:
        """One sum: of all, or of a group; ``part``: which bits."""
        of_group, step = (("g0", self.group), ("g0", self.each)), 1 if self.halves else self.terms
        if self.nested:
            dims, group = (("k", affine(self.each)),), at("g0")[0]
            line = number(of_group[0], ("k", step), constant=part * (self.each if self.halves else 1))
            place = number(of_group[1], ("k", 1))
        elif self.halves and self.terms > 1:  # two dimensions of one sum
            dims, group = (("g0", affine("g")), ("k", affine(self.each))), at("g0")[0]
            line = number(of_group[0], ("k", 1), constant=part * self.each)
            place = number(of_group[1], ("k", 1))
        else:
            dims, group = (("k", affine("g", self.each)),), Number(Quotient(affine("k"), self.each), "int64")
            line, place = number(("k", self.terms), constant=part), number(("k", 1))
        factors = [self._wide(Load("a", (*at("i"), line), self.dtype)), self._bits(place, part)]
        return Fold("sum", dims, Op("prod", (*factors, *(() if self.nested else self._scales(group)))))

    def _scales(self, group: Expr) -> tuple[Expr, ...]:
        if self.scaled == "column":
            return ()
        return (cast(Load("scale", (*at("j"), group), "float16")),)

    def _bits(self, place: Expr, part: int) -> Expr:
        name, dtype, _ = BITS[self.bits]
        load: Expr = Load(name, (place, *at("j")) if self.across else (*at("j"), place), dtype)
        if self.bits == "nibbles":
            wide = Op("zext_int32", (load,))
            load = Op("ashr", (wide, Number(affine(4), "int32"))) if part else Op("and", (wide, number32(15)))
        load = cast(load, "int32") if self.bits == "whole" and self.zero else load
        return cast(Op("sum", (load, number32(-8))) if self.zero else load)

    def _wide(self, load: Load) -> Expr:
        return load if self.dtype == "float32" else cast(load)


def number32(value: int) -> Number:
    return Number(affine(value), "int32")


def data(c: Computation, seed: int) -> dict[str, np.ndarray]:
    chance, found = np.random.default_rng(seed), {}
    for b in c.buffers:
        shape = tuple(evaluate_int(x, SIZES) for x in b.shape)
        whole = "int" in b.dtype
        low, high = (-128, 128) if b.dtype == "int8" else (0, 256)
        found[b.name] = chance.integers(low, high, shape).astype(b.dtype) if whole else chance.standard_normal(shape)
    return found


CONTRACT = """// /// fsr
// entry = "k"
// [sizes]
// m = {min = 1, max = 512, timed = 256}
// n = {min = 1, max = 512, timed = 256}
// g = {min = 1, max = 64, timed = 32}
// [args]
// y = {role = "out", shape = ["m", "n"]MORE}
// [launch]
// grid = 1
// block = 32
// ///
__global__ void k(float *y) {}
"""


def same(one: str, other: str) -> bool:
    return always(subject_of(CONTRACT.replace("MORE", "")).contract, f"({one}) == ({other})")


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_kept_the_outputs_are_those_of_before(seed):
    form = Form(seed)
    c = form.computation()
    inputs = data(c, seed)
    want = interpret(c, SIZES, inputs, wide=True)["y"]
    found = list(operands_kept(c, same, lambda *_: True))
    plain = form.bits == "whole" and form.scaled == "column" and not form.zero
    assert found or (plain and form.dtype == "float32" and not form.nested), vars(form)
    for told in found:
        shaped = {b.name: inputs[b.name].reshape([evaluate_int(x, SIZES) for x in b.shape])
                  for b in told.buffers if b.name in inputs}  # fmt: skip
        got = interpret(told, SIZES, shaped, wide=True)["y"]
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
        output = next(s for s in told.statements if s.target == "y")
        rest = [s.value for s in told.statements if not s.target.startswith(KEPT)]
        folds = [e for value in rest for e in distinct(value) if isinstance(e, Fold)]
        assert form.scaled != "column" or "column" in repr(output)  # what all terms have stays outside
        assert len(folds) == 1  # one sum is left, of two reads
        assert len({e.buffer for e in distinct(folds[0]) if isinstance(e, Load)}) == 2
    kept = [next((b.dtype for b in told.buffers if b.name.startswith(KEPT)), None) for told in found]
    if form.dtype != "float32" and not plain:
        assert kept == [form.dtype, "float32"]


def simple(line: Number, scale: Expr | None = None) -> Computation:
    """y[i, j] = sum(a[i, line] * scale[j, k // 4] * w[j, k])"""
    scale = scale or cast(Load("scale", (*at("j"), Number(Quotient(affine("k"), 4), "int64")), "float16"))
    body = Op("prod", (Load("a", (*at("i"), line), "float32"), scale, cast(Load("w", at("j", "k"), "int8"))))
    buffers = (Buffer("a", "float32", ("m", "8 * g")), Buffer("w", "int8", ("n", "4 * g")),
               Buffer("scale", "float16", ("n", "g")), Buffer("y", "float32", ("m", "n")))  # fmt: skip
    statement = Statement(
        "map", "y", (("i", "m"), ("j", "n")), Fold("sum", (("k", affine("g", 4)),), body), at("i", "j")
    )
    return Computation(("m", "n", "g"), buffers, (statement,))


def test_of_a_line_that_is_read_in_part_both_factors_are_kept():
    """Every other element: no number of a term tells the whole line."""
    (found,) = operands_kept(simple(number(("k", 2))), same, lambda *_: False)
    assert sum(b.name.startswith(KEPT) for b in found.buffers) == 2


def test_what_is_put_together_of_both_dimensions_is_no_factor():
    mixed = Load("scale", (*at("j"), Number(Quotient(Affine((("i", 1), ("k", 1))), 4), "int64")), "float16")
    assert not list(operands_kept(simple(number(("k", 1)), cast(mixed)), same, lambda *_: False))


def test_a_sum_whose_length_is_the_points_own_stays():
    c = simple(number(("k", 1)))
    (output,) = c.statements
    assert list(operands_kept(c, same, lambda *_: False))
    shorter = replace(output.value, dims=(("k", affine("i")),))
    assert not list(operands_kept(replace(c, statements=(replace(output, value=shorter),)), same, lambda *_: False))


def test_a_factor_that_one_of_two_sums_has_twice_stays_in_it():
    scale, other = Load("s", at("j"), "float32"), Load("w", at("j", "k"), "int8")
    a = (Load("a", (*at("i"), number(("k", 2), constant=part)), "float32") for part in (0, 1))
    terms = (Op("prod", (next(a), cast(other), scale, scale)), Op("prod", (next(a), cast(other), scale)))
    value = Op("sum", tuple(Fold("sum", (("k", affine("g", 4)),), term) for term in terms))
    c = simple(number(("k", 1)))
    buffers = (*(b for b in c.buffers if b.name != "scale"), Buffer("s", "float32", ("n",)))
    c = replace(c, buffers=buffers, statements=(replace(c.statements[0], value=value),))
    inputs = data(c, 5)
    (told,) = operands_kept(c, same, lambda *_: False)
    shaped = {b.name: inputs[b.name].reshape([evaluate_int(x, SIZES) for x in b.shape])
              for b in told.buffers if b.name in inputs}  # fmt: skip
    got, want = interpret(told, SIZES, shaped, wide=True), interpret(c, SIZES, inputs, wide=True)
    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-12)


def test_a_buffer_whose_lines_are_told_otherwise_elsewhere_stays():
    c = Form(next(s for s in itertools.count() if Form(s).bits == "nibbles")).computation()
    assert list(operands_kept(c, same, lambda *_: False))
    more = Statement("map", "z", (("i", "m"),), Load("a", (*at("i"), number()), c.buffer("a").dtype), at("i"))
    buffers = (*c.buffers, Buffer("z", c.buffer("a").dtype, ("m",)))
    assert not list(operands_kept(Computation(c.sizes, buffers, (*c.statements, more)), same, lambda *_: False))


def limited(bounds: str, more: str = ""):
    text = CONTRACT.replace("MORE", "").replace(
        "// [launch]", f'// s = {{role = "in", shape = ["n"]{bounds}}}\n{more}// [launch]'
    )
    return subject_of(text.replace("k(float *y)", "k(float *y, const float *s)")).contract


NIBBLE = cast(Op("sum", (Op("and", (Op("zext_int32", (Load("q", at("j"), "uint8"),)), number32(15))), number32(-8))))
HUNDREDS = cast(Op("prod", (number32(100), cast(Load("w", at("j"), "int8"), "int32"))))
SCALED = Op("prod", (Load("s", at("i"), "float32"), NIBBLE))
ROUGH = "// [tolerance]\n// rtol = 0.01\n"


@pytest.mark.parametrize(
    ("e", "bounds", "more", "dtype", "result", "fits"),
    [
        (NIBBLE, "", "", "bfloat16", "float32", True),
        (cast(Load("w", at("j"), "int8")), "", "", "bfloat16", "float32", True),
        (cast(Load("w", at("j"), "int16")), "", "", "bfloat16", "float32", False),
        (HUNDREDS, "", "", "float16", "float32", False),
        (SCALED, "", "", "bfloat16", "float32", False),  # floats are not rounded to halves
        (SCALED, "", "", "bfloat16", "bfloat16", True),
        (SCALED, "", ROUGH, "bfloat16", "float32", True),
        (SCALED, "", "// [tolerance]\n// exact = true\n", "bfloat16", "bfloat16", False),
        (SCALED, "", "", "float16", "float16", False),  # too large, or too small for all its digits
        (SCALED, ", low = 0.001, high = 0.1", "", "float16", "float16", False),
        (SCALED, ", low = 0.001, high = 0.1", ROUGH, "float16", "float16", True),
        (SCALED, ", low = 0.0, high = 0.1", ROUGH, "float16", "float16", False),
        (SCALED, ", low = 0.001, high = 9000", ROUGH, "float16", "float16", False),
        (SCALED, ", low = 0.001, high = 0.1", "", "bfloat16", "float16", False),
    ],
)  # fmt: skip
def test_a_half_holds_small_whole_numbers_and_what_the_result_is_rounded_to(e, bounds, more, dtype, result, fits):
    assert holds(limited(bounds, more), e, dtype, result) == fits


GEMM = """// /// fsr
// entry = "k"
// [sizes]
// m = {min = 1, max = 512, timed = 256}
// n = {min = 1, max = 512, timed = 256}
// g = {min = 1, max = 64, timed = 32}
// d = "16 * g"
// [args]
// y = {role = "out", shape = ["m", "n"], dtype = "float16"}
// a = {role = "in", shape = ["m", "d"]}
// q = {role = "in", shape = ["n", "8 * g"]}
// s = {role = "in", shape = ["n", "g"], low = 0.001, high = 0.1}
// n = {value = "n"}
// m = {value = "m"}
// d = {value = "d"}
// [launch]
// grid = "ceil_div(n * m, 64)"
// block = 64
// [tolerance]
// sum_length = "d"
// rtol = 0.002
// ///
#include <cuda_fp16.h>
__global__ void k(__half *y, const __half *a, const unsigned char *q, const float *s, int n, int m, int d) {
  int at = blockIdx.x * 64 + threadIdx.x, i = at / n, j = at % n;
  if (at >= n * m) return;
  float sum = 0;
  for (int k = 0; k < d; k++) {
    int bits = k % 2 ? q[j * (d / 2) + k / 2] >> 4 : q[j * (d / 2) + k / 2] & 15;
    sum += __half2float(a[i * d + k]) * (s[j * (d / 16) + k / 16] * (bits - 8));
  }
  y[at] = __float2half(sum);
}
"""


@pytest.mark.parametrize("family", ["warpgroup-contraction", "tensor-contraction", "tile-contraction"])
def test_weights_of_four_bits_with_scales_of_groups(runner, family):
    def half(part: int) -> Expr:
        bits: Expr = Op("zext_int32", (Load("q", at("j", "k0"), "uint8"),))
        bits = Op("ashr", (bits, number32(4))) if part else Op("and", (bits, number32(15)))
        scale = Load("s", (*at("j"), Number(Quotient(affine("k0"), 8), "int64")), "float32")
        a = cast(Load("a", (*at("i"), number(("k0", 2), constant=part)), "float16"))
        return Fold("sum", (("k0", affine("g", 8)),), Op("prod", (a, scale, cast(Op("sum", (bits, number32(-8)))))))

    value = Op("float16", (Op("sum", (half(0), half(1))),))
    subject = computed(subject_of(GEMM), {"y": value}, ("n", "m", "g"))
    moves = list(FAMILY[family].moves(subject))
    assert moves
    made = FAMILY[family].apply(subject, moves[0])
    assert len(made.plan.launches) == 2  # one for what is kept
    for m, n, g in ((37, 70, 5), (1, 1, 1), (64, 128, 8)):
        sizes = {"m": m, "n": n, "g": g}
        want = runner.outputs(subject.candidate, subject.contract, sizes)["y"].astype(float)
        got = runner.outputs(made, subject.contract, sizes)["y"].astype(float)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())


def test_what_is_many_times_what_there_is_is_not_kept():
    c = Form(3).computation()
    shapes = []
    assert list(operands_kept(c, same, lambda *_: False, lambda shape: not shapes.append(shape)))
    assert shapes
    assert not list(operands_kept(c, same, lambda *_: False, lambda _: False))
