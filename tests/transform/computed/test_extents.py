"""Rows whose length is a size times a number, as contracts of fixed tiles say it."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Const, Fold, Load, Op
from tests.transform.computed.test_families import at, check, computed
from tests.transform.conftest import subject_of

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 256}
// c = {min = 1, max = 32, timed = 12}
// [args]
// x = {role = "in", shape = ["4 * n", "32 * c"]}
// total = {role = "out", shape = ["4 * n"]}
// y = {role = "out", shape = ["4 * n", "32 * c"]}
// PARAMETER
// [launch]
// grid = "n"
// block = 4
// [tolerance]
// sum_length = "32 * c"
// ///
__global__ void k(const float *x, float *total, float *y, int LENGTH) {
  int row = blockIdx.x * 4 + threadIdx.x;
  int cols = COLS;
  float s = 0.0f;
  for (int j = 0; j < cols; j++) s += x[row * cols + j] * x[row * cols + j];
  total[row] = s;
  for (int j = 0; j < cols; j++) y[row * cols + j] = x[row * cols + j] / (s + 1.0f);
}
"""


@pytest.mark.parametrize(
    ("parameter", "name", "cols"),
    [('width = {value = "32 * c"}', "width", "width"), ('tiles = {value = "c"}', "tiles", "32 * tiles")],
)
def test_rows_of_a_multiple_of_a_size(runner, parameter: str, name: str, cols: str):
    text = KERNEL.replace("PARAMETER", parameter).replace("LENGTH", name).replace("COLS", cols)
    own = Load("x", at("i", "j"), "float32")
    square = Op("prod", (Load("x", at("i", "k0"), "float32"),) * 2)
    total = Fold("sum", (("k0", Affine((("c", 32),))),), square)
    one = Op("sum", (total, Const(1.0, "float32")))
    subject = computed(subject_of(text), {"total": total, "y": Op("div", (own, one))}, ("n", "c"))
    check(runner, subject, "fold-rows", [(3, 1), (2, 5), (1, 32)], most=4)
