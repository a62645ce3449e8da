"""Running folds down the columns, and running folds in the place of what they run over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Affine, Expr, Fold, Load, Op
from fsr.lifting.lift import lift
from tests.transform.computed.test_families import FAMILY, at, computed, require_apart
from tests.transform.conftest import subject_of

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 64, timed = 2}
// n = {min = 1, max = 8192, timed = 1024}
// m = {min = 1, max = 8192, timed = 640}
// [args]
ARGS
// [launch]
// grid = ["ceil_div(m, 64)", "b"]
// block = 64
// [tolerance]
// sum_length = "n"
// ///
"""
OUTSIDE = '// x = {role = "in", shape = ["b", "n", "m"]}\n// y = {role = "out", shape = ["b", "n", "m"]}'
INSIDE = '// x = {role = "inout", shape = ["b", "n", "m"]}'
KERNEL = """__global__ void k(PARAMS, int b, int n, int m) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= m) return;
  TYPE s = FIRST;
  for (int r = 0; r < n; r++) { long long i = ((long long)blockIdx.y * n + r) * m + c; STEP }
}"""


def kernel(args: str, params: str, kind: str, first: str, step: str) -> str:
    text = KERNEL.replace("PARAMS", params).replace("TYPE", kind).replace("FIRST", first).replace("STEP", step)
    return HEAD.replace("ARGS", args) + text


def upto(op: str, constant: int, x: Expr | None = None) -> Fold:
    return Fold(op, (("k0", Affine((("j", 1),), constant)),), x or Load("x", at("i", "k0", "i2"), "float32"))


PLAIN = "const float *x, float *y"
CASES = {
    "sum": (kernel(OUTSIDE, PLAIN, "float", "0", "s += x[i]; y[i] = s;"), {"y": upto("sum", 1)}),
    "before": (
        kernel(OUTSIDE, PLAIN, "float", "0", "y[i] = s * x[i]; s += x[i];"),
        {"y": Op("prod", (upto("sum", 0), Load("x", at("i", "j", "i2"), "float32")))},
    ),
    "largest": (kernel(OUTSIDE, PLAIN, "float", "-INFINITY", "s = fmaxf(s, x[i]); y[i] = s;"), {"y": upto("max", 1)}),
    "in place": (kernel(INSIDE, "float *x", "float", "0", "s += x[i]; x[i] = s;"), {"x": upto("sum", 1)}),
}


@pytest.mark.parametrize("alignment", [256, 4])
@pytest.mark.parametrize("name", CASES)
def test_scans_down_columns(runner, name, alignment):
    text, values = CASES[name]
    subject = computed(subject_of(text), values, ("b", "n", "m"))
    moves = list(FAMILY["scan-columns"].moves(subject))
    chosen = {(m.param("pack"), m.param("parts") == 1): m for m in moves}
    assert len(chosen) == 6
    for move in chosen.values():
        made = FAMILY["scan-columns"].apply(subject, move)
        assert len(made.plan.launches) == (1 if move.param("parts") == 1 else 2)
        for sizes in ({"b": 2, "n": 700, "m": 68}, {"b": 1, "n": 1, "m": 1}, {"b": 1, "n": 65, "m": 131}):
            want, got = (runner.outputs(c, subject.contract, sizes, alignment=alignment)
                         for c in (subject.candidate, made))  # fmt: skip
            for out, right in want.items():
                np.testing.assert_allclose(got[out], right, rtol=1e-4, atol=1e-4, err_msg=move.name)


ROWS = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 8192, timed = ROWS}
// m = {min = 1, max = 1048576, timed = 65536}
// [args]
// x = {role = "inout", shape = ["n", "m"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "m"
// ///
__global__ void k(float *x, int n, int m) {
  int r = blockIdx.x * 64 + threadIdx.x;
  if (r >= n) return;
  float s = 0;
  for (int c = 0; c < m; c++) { s += x[(long long)r * m + c]; x[(long long)r * m + c] = s; }
}"""


@pytest.mark.parametrize("family", ["scan-tiles", "scan-look-back"])
def test_scans_along_rows_in_place(runner, family):
    value = Fold("sum", (("k0", Affine((("j", 1),), 1)),), Load("x", at("i", "k0"), "float32"))
    subject = computed(subject_of(ROWS.replace("ROWS", "2")), {"x": value}, ("n", "m"))
    moves = list(FAMILY[family].moves(subject))
    for move in (moves[0], moves[-1]):
        made = FAMILY[family].apply(subject, move)
        for sizes in ({"n": 2, "m": 9001}, {"n": 3, "m": 64}, {"n": 1, "m": 1}):
            want, got = (runner.outputs(c, subject.contract, sizes)["x"] for c in (subject.candidate, made))
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=move.name)


def test_what_another_point_overwrites_is_not_read():
    """Of ``x[r] = x[n - 1] + sum(x[0..r])`` the last element is another point's."""
    last = Load("x", (*at("i"), *[replace(i, index=Affine((("n", 1),), -1)) for i in at("j")], *at("i2")), "float32")
    subject = computed(subject_of(CASES["in place"][0]), {"x": Op("sum", (last, upto("sum", 1)))}, ("b", "n", "m"))
    assert require_apart(subject, "scan-columns")


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_unsigned_integers_in_place_are_lifted_and_scanned(runner):
    text = kernel(INSIDE, "unsigned *x", "unsigned", "0", "s += x[i]; x[i] = s;")
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    subject = replace(bare, computation=found.computation)
    made = FAMILY["scan-columns"].apply(subject, next(FAMILY["scan-columns"].moves(subject)))
    sizes = {"b": 1, "n": 70, "m": 33}
    want, got = (runner.outputs(c, subject.contract, sizes)["x"] for c in (subject.candidate, made))
    np.testing.assert_array_equal(got, want)
