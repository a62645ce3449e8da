"""Products on tensor cores and through pipelines of copies: right at every size, offered where rounding allows it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from fsr.computation.expression import Const, Expr, Load, Op
from fsr.lifting.lift import lift
from fsr.transform.computed.action import FROM_COMPUTATION
from tests.transform.computed.test_families import at, check, computed, over
from tests.transform.conftest import subject_of

FAMILY = {action.name: action for action in FROM_COMPUTATION}
LINEAR = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 2048}
// m = {min = 1, max = 4096, timed = 1024}
// c = {min = 1, max = 4096, timed = 1024}
// [args]
// y = {role = "out", shape = ["n", "m"], dtype = "OUT"}
// a = {role = "in", shape = ["n", "c"], dtype = "DTYPE"}
// b = {role = "in", shape = [SHAPE], dtype = "DTYPE"}
// bias = {role = "in", shape = ["m"]}
// n = {value = "n"}
// m = {value = "m"}
// c = {value = "c"}
// [launch]
// grid = "ceil_div(n * m, 64)"
// block = 64
// [tolerance]
// sum_length = "c" MORE
// ///
#include <cuda_fp16.h>
__global__ void k(OUT_T* y, const T* a, const T* b, const float* bias, int n, int m, int c) {
  int at = blockIdx.x * 64 + threadIdx.x, i = at / m, j = at % m;
  if (at >= n * m) return;
  SUM_T s = 0;
  for (int k = 0; k < c; k++) s += (SUM_T)a[i * c + k] * (SUM_T)b[PLACE];
  y[at] = fmaxf((float)s + bias[j], 0.0f);
}
"""
NAMES = {"float32": "float", "float16": "__half", "float64": "double"}


def linear(dtype="float16", out="float32", transposed=True, summed="float32", more=""):
    """A linear layer with bias and ReLU, its weights by output or by input."""
    shape, place = ('"m", "c"', "j * c + k") if transposed else ('"c", "m"', "k * m + j")
    text = LINEAR.replace("SHAPE", shape).replace("PLACE", place).replace("MORE", more).replace("DTYPE", dtype)
    for word, type_ in (("OUT_T", NAMES[out]), ("SUM_T", NAMES[summed]), ("const T*", f"const {NAMES[dtype]}*")):
        text = text.replace(word, type_)

    def factor(name: str, *dims: str) -> Expr:
        load = Load(name, at(*dims), dtype)
        return load if dtype == summed else Op(summed, (load,))

    b = factor("b", *(("j", "k0") if transposed else ("k0", "j")))
    total = over("sum", "c", Op("prod", (factor("a", "i", "k0"), b)))
    whole = Op("max", (Op("sum", (total, Load("bias", at("j"), "float32"))), Const(0.0, "float32")))
    value = whole if out == "float32" else Op(out, (whole,))
    return computed(subject_of(text.replace('"OUT"', f'"{out}"')), {"y": value}, ("n", "m", "c"))


SIZES = [(37, 70, 45), (1, 1, 1), (130, 72, 88)]


@pytest.mark.parametrize("transposed", [True, False])
def test_products_of_halves(runner, transposed):
    subject = linear(out="float16" if transposed else "float32", transposed=transposed)
    moves = check(runner, subject, "tensor-contraction", SIZES[:: 1 if transposed else 2], most=1)
    assert {move.param("stages") for move in moves} >= {1, 2, 3}
    made = FAMILY["tensor-contraction"].apply(subject, moves[0])
    assert made.source.count("#include <mma.h>") == 1
    if transposed:
        assert runner.faults(made, subject.contract, {"n": 70, "m": 64, "c": 72}) == []


def test_a_pipeline_of_copies(runner):
    subject = linear("float32", transposed=False)  # one operand goes there by elements, one by vectors
    moves = check(runner, subject, "pipeline-contraction", SIZES, most=1)
    made = FAMILY["pipeline-contraction"].apply(subject, moves[0])
    assert runner.faults(made, subject.contract, {"n": 70, "m": 64, "c": 72}) == []


@pytest.mark.parametrize(
    ("family", "params"),
    [("pipeline-contraction", {"bm": 128, "bn": 32, "bk": 4, "tm": 4, "tn": 4, "stages": 2}),
     ("tensor-contraction", {"bm": 64, "bn": 16, "bk": 16, "wm": 16, "wn": 16, "stages": 2})],
)  # fmt: skip
def test_tiles_with_fewer_words_than_threads(runner, family, params):
    """Some threads fetch nothing: a tile is whole all the same."""
    subject = linear("float32" if family[0] == "p" else "float16", transposed=False)
    move = next(iter(FAMILY[family].moves(subject)))
    made = FAMILY[family].apply(subject, replace(move, params=tuple(params.items())))
    assert re.search(r"if \((part|chunk) < \d+\)", made.source)
    sizes = {"n": 70, "m": 64, "c": 24}
    want, got = (runner.outputs(x, subject.contract, sizes)["y"] for x in (subject.candidate, made))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_floats_become_tf32_only_where_the_contract_says_so(runner):
    assert not list(FAMILY["tensor-contraction"].moves(linear("float32")))
    assert not list(FAMILY["tensor-contraction"].moves(linear("float32", more="\n// rtol = 1e-4")))
    loose = linear("float32", more="\n// rtol = 2e-3")
    check(runner, loose, "tensor-contraction", SIZES[:1], most=1)


def test_no_tensor_core_sums_less_exactly_than_the_original():
    assert not list(FAMILY["tensor-contraction"].moves(linear(summed="float64")))
    assert not list(FAMILY["pipeline-contraction"].moves(linear()))  # halves are no words that are copied so


def test_what_tensor_cores_compute_is_seen_when_they_are_watched():
    """A candidate's products, through shared memory and fragments, are the sum that the original computes."""
    subject = linear()
    action = FAMILY["tensor-contraction"]
    made = action.apply(subject, min(action.moves(subject), key=lambda move: int(move.param("bm"))))
    found = lift(subject.contract, made)
    assert found.computation == subject.computation, found.why
