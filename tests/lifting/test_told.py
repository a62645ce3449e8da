"""Whole noughts, with which tiles are filled up at borders, hide no sum of products; places that are nought stay."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

TILED = """// /// fsr
// entry = "product"
// [sizes]
// n = {min = 1, max = 1024, timed = 512}
// [args]
// a = {role = "in", shape = ["n", "n"], low = 0, high = 99}
// b = {role = "in", shape = ["n", "n"], low = 0, high = 99}
// c = {role = "out", shape = ["n", "n"]}
// [launch]
// grid = ["ceil_div(n, 8)", "ceil_div(n, 8)"]
// block = [8, 8]
// ///
__global__ void product(const int *a, const int *b, int *c, int n) {
  __shared__ int left[8][8], right[8][8];
  int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 8 + threadIdx.x, sum = 0;
  for (int t = 0; t < gridDim.x; ++t) {
    int at = row * n + t * 8 + threadIdx.x;  // beyond a row's end stands the next one
    left[threadIdx.y][threadIdx.x] = at < n * n ? a[at] : 0;
    at = (t * 8 + threadIdx.y) * n + col;
    right[threadIdx.y][threadIdx.x] = at < n * n ? b[at] : 0;
    __syncthreads();
    for (int k = 0; k < 8; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = sum;
}"""
FILTER = """// /// fsr
// entry = "filtered"
// [sizes]
// lines = {min = 1, max = 64, timed = 64}
// width = {min = 1, max = 9, timed = 9}
// [args]
// x = {role = "in", dtype = "int16", shape = ["lines", 256]}
// taps = {role = "in", shape = ["width"], low = -1, high = 1}
// y = {role = "out", shape = ["lines", 256]}
// [launch]
// grid = ["4", "lines"]
// block = 64
// [tolerance]
// sum_length = "width"
// ///
__global__ void filtered(const short *x, const float *taps, float *y, int width) {
  __shared__ short cached[80];
  int first = blockIdx.x * 64 - width / 2;
  for (int k = threadIdx.x; k < 64 + width; k += 64) {
    int at = first + k;
    cached[k] = at < 0 || at >= 256 ? 0 : x[blockIdx.y * 256 + at];
  }
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < width; ++k) sum += cached[threadIdx.x + k] * taps[k];
  y[blockIdx.y * 256 + blockIdx.x * 64 + threadIdx.x] = sum;
}"""
PLACES = """// /// fsr
// entry = "weighed"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void weighed(const float *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i] * (float)i;
}"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TILED, "c[i, j] = sum(a[i, k0] * b[k0, j] for k0 in range(n))"),
        (FILTER, "y[i, j] = sum(taps[k0] * float32(x[i, -(width // 2) + j + k0]) for k0 in range(width) if inside)"),
        (PLACES, "y[i] = x[i] * i"),
    ],
    ids=["tiles", "a filter", "places"],
)
def test_the_shorter_form_is_told(tmp_path, text, told):
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=30)
    assert found.computation is not None, found.why
    assert lines(found.computation) == [told]
