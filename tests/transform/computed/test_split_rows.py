"""Folds of few long rows, and of all there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fsr.computation.canonical import DIMS
from fsr.computation.expression import Affine, Case, Const, Load, Number, Op
from tests.transform.computed.test_families import FAMILY, at, computed, over
from tests.transform.conftest import subject_of

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_all_there_is_is_added_to_what_was_there(runner):
    total = over("sum", "n", Load("x", at("k0"), "float32"))
    before = Load("total", (Number(Affine(), "int64"),), "float32")
    subject = subject_of((EXAMPLES / "reduction.cu").read_text())
    subject = computed(subject, {"total": Op("sum", (total, before))}, ("n",))
    move = next(m for m in FAMILY["split-rows"].moves(subject) if m.param("threads") == 128)
    made = FAMILY["split-rows"].apply(subject, move)
    assert [launch.grid[0] for launch in made.plan.launches] == [f"{move.param('parts')} * 1", "1"]
    for n in (1, 5003):
        want, got = (runner.outputs(c, subject.contract, {"n": n})["total"] for c in (subject.candidate, made))
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_rows_that_fill_the_gpu_are_not_split():
    text = """// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 65536}
// cols = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "rows"
// block = 1
// ///
__global__ void k(const float *x, float *y, int cols) {
  float s = 0;
  for (int c = 0; c < cols; c++) s += x[blockIdx.x * cols + c];
  y[blockIdx.x] = s;
}"""
    value = over("sum", "cols", Load("x", at("i", "k0"), "float32"))
    assert not list(FAMILY["split-rows"].moves(computed(subject_of(text), {"y": value}, ("rows", "cols"))))


def test_several_totals_of_one_buffer_are_made_in_one_walk(runner):
    text = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 16777216, timed = 4194304}
// [args]
// x = {role = "in", shape = ["n"]}
// s = {role = "inout", shape = [3]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(const float* x, float* s, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&s[0], x[i]);
  atomicAdd(&s[1], x[i] * x[i]);
  if (i == 0) s[2] = 5;
}
"""
    x = Load("x", at("k0"), "float32")
    own = [Load("s", (Number(Affine((), n), "int64"),), "float32") for n in range(2)]
    sums = [over("sum", "n", body) for body in (x, Op("prod", (x, x)))]
    first, second = (Op("sum", pair) for pair in zip(sums, own, strict=True))
    here = Affine(((DIMS[0], 1),))
    value = Case(here, Affine(), first, Case(here, Affine((), 1), second, Const(5.0, "float32")))
    subject = computed(subject_of(text), {"s": value}, ("n",))
    move = next(FAMILY["split-rows"].moves(subject))
    made = FAMILY["split-rows"].apply(subject, move)
    assert len(made.plan.launches) == 3
    for n in (1, 5003):
        want, got = (runner.outputs(c, subject.contract, {"n": n})["s"] for c in (subject.candidate, made))
        np.testing.assert_allclose(got, want, rtol=1e-5)
