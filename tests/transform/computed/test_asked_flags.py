"""Schedules of computations that ask for a flag: a scalar of a few values, which the kernel is given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.computation.expression import Affine, Case, Fold, Load
from fsr.contract.flags import fixed_at
from tests.transform.computed.test_families import FAMILY, at, computed
from tests.transform.conftest import subject_of

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 2048, timed = 2048}
// cols = {min = 1, max = 1024, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows"]}
// mode = {low = 0, high = 1}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// ///
__global__ void k(const float *x, float *y, int rows, int cols, int mode) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = x[r * cols];
  for (int c = 1; c < cols; c++) {
    float v = x[r * cols + c];
    if (mode == 0) s = fminf(s, v); else s = fmaxf(s, v);
  }
  y[r] = s;
}
"""


@pytest.mark.parametrize("mode", [0, 1])
def test_rows_are_folded_as_the_flag_says(runner, mode):
    folds = [Fold(op, (("k0", Affine((("cols", 1),))),), Load("x", at("i", "k0"), "float32")) for op in ("min", "max")]
    value = Case(Affine((("mode", 1),)), Affine((), 0), *folds)
    subject = computed(subject_of(KERNEL), {"y": value}, ("rows", "cols", "mode"))
    moves = list(FAMILY["fold-rows"].moves(subject))
    assert moves
    contract, _ = fixed_at(subject.contract, {"mode": mode})
    for move in moves[:2]:
        changed = FAMILY["fold-rows"].apply(subject, move)
        runner.check(replace(subject, contract=contract), changed, {"rows": 5, "cols": 70}, {"rows": 3, "cols": 1})
