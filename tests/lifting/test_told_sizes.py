"""Sizes that a kernel reads from a buffer, which holds what the contract says, are sizes like any others."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

RING = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 900, timed = 800}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n", "n"]}
// shape = {role = "in", dtype = "int32", shape = [2], VALUE}
// y = {role = "out", dtype = "int32", shape = ["n", "n"]}
// [launch]
// grid = "ceil_div(n, 8)"
// block = 32
// ///
__global__ void k(const int *x, const int *shape, int *y) {
  int w = shape[0], all = w * shape[1];
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < all; at += gridDim.x * blockDim.x) {
    int c = at % w, row = at - c;
    y[at] = x[row + (c + 1) % w] - x[(row + all - w) % all + c];
  }
}"""


@pytest.mark.parametrize("value", ['value = "n"', 'low = "n", high = "n"'])
def test_what_a_buffer_always_holds_bounds_loops_and_wraps_indices(tmp_path, value):
    (tmp_path / "k.cu").write_text(RING.replace("VALUE", value))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i, j] = x[i, (j + 1) % n] - x[(i - 1) % n, j]"]


def test_what_a_buffer_may_hold_is_data(tmp_path):
    (tmp_path / "k.cu").write_text(RING.replace("VALUE", 'low = 1, high = "n"'))
    kernel = load_kernel(tmp_path / "k.cu")
    assert lift(kernel.contract, kernel.baseline, limit_s=10).computation is None


MARKED = """// /// fsr
// entry = "k"
// [sizes]
// cols = {min = 1, max = 900, timed = 900}
// deep = {min = 1, max = 900, timed = 900}
// rows = {min = 1, max = 900, timed = 900}
// [args]
// x = {role = "in", dtype = "float32", shape = ["deep", "rows"]}
// marks = {role = "inout", dtype = "float32", shape = ["rows", "cols"]}
// y = {role = "out", dtype = "float32", shape = ["deep", "rows"]}
// deep = {value = "deep"}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = 128
// ///
__global__ void k(const float *x, float *marks, float *y, int deep, int rows, int cols) {
  int r = blockIdx.x;
  if (threadIdx.x < cols) marks[r * cols + threadIdx.x] = 1.0f;
  for (int t = threadIdx.x; t < deep; t += 128) y[t * rows + r] = 2.0f * x[t * rows + r];
}"""


def test_a_block_that_reaches_no_further_is_told_by_its_length_alone(tmp_path):
    (tmp_path / "k.cu").write_text(MARKED)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert "marks[i, j] = (1.0 if j <= 127 else marks[i, j])" in lines(found.computation)
