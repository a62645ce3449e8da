"""Buffers with rows that are long at any sizes, as launches by whole blocks have them: what is written is a part of
them, or sizes can be told apart at few of them alone."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.sampling import watched_sizes
from fsr.lifting.written import all_edges_seen
from fsr.runs.kernel import load_kernel
from tests.lifting.lifted import computed

traced = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

PITCHED = """// /// fsr
// entry = "k"
// [sizes]
// w = {min = 1, max = 900, timed = 900}
// h = {min = 1, max = 900, timed = 900}
// [args]
// y = {role = "inout", dtype = "float32", shape = ["h", "round_up(w, 256)"]}
// x = {role = "in", dtype = "float32", shape = ["h", "round_up(w, 256)"]}
// pitch = {value = "round_up(w, 256)"}
// w = {value = "w"}
// h = {value = "h"}
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 8)"]
// block = [32, 8]
// ///
__global__ void k(float *y, const float *x, int pitch, int w, int h) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  if (c >= w || r >= h) return;
  int left = max(c - 1, 0), right = min(c + 1, w - 1);
  y[r * pitch + c] = x[r * pitch + left] + x[r * pitch + right];
}"""
TAPS = """// /// fsr
// entry = "k"
// [sizes]
// taps = {min = 1, max = 32, timed = 8}
// blocks = {min = 1, max = 16, timed = 8}
// times = {min = 1, max = 512, timed = 256}
// streams = {min = 1, max = 16, timed = 8}
// [args]
// y = {role = "out", dtype = "float32", shape = ["streams", "times", "256 * blocks", 2]}
// x = {role = "in", dtype = "float32", shape = ["streams", "times - 1 + taps", "256 * blocks", 2]}
// f = {role = "in", dtype = "float32", shape = ["taps", "256 * blocks"]}
// taps = {value = "taps"}
// [launch]
// grid = ["blocks", "times", "streams"]
// block = 256
// ///
__global__ void k(float2 *y, const float2 *x, const float *f, int taps) {
  int row = gridDim.x * 256, c = blockIdx.x * 256 + threadIdx.x;
  const float2 *from = x + (blockIdx.z * (gridDim.y - 1 + taps) + blockIdx.y) * row;
  float2 sum = {0, 0};
  for (int t = 0; t < taps; ++t) {
    sum.x += f[t * row + c] * from[t * row + c].x;
    sum.y += f[t * row + c] * from[t * row + c].y;
  }
  y[(blockIdx.z * gridDim.y + blockIdx.y) * row + c] = sum;
}"""
HALO = """// /// fsr
// entry = "k"
// [sizes]
// a = {min = 1, max = 256, timed = 128}
// b = {min = 1, max = 128, timed = 64}
// c = {min = 1, max = 2, timed = 1}
// [args]
// y = {role = "inout", dtype = "float32", shape = ["a + 12", "8 * b + 24", "256 * c + 64"]}
// x = {role = "in", dtype = "float32", shape = ["a + 12", "8 * b + 24", "256 * c + 64"]}
// a = {value = "a"}
// row = {value = "256 * c + 64"}
// plane = {value = "(8 * b + 24) * (256 * c + 64)"}
// [launch]
// grid = ["c", "2 * b"]
// block = [256, 4]
// ///
__global__ void k(float *y, const float *x, int a, int row, int plane) {
  int at = 6 * plane + (blockIdx.y * 4 + threadIdx.y + 12) * row + blockIdx.x * 256 + threadIdx.x + 32;
  for (int i = 0; i < a; ++i, at += plane) y[at] = 2.0f * x[at] - x[at - plane];
}"""


@traced
def test_what_is_written_of_a_pitched_row_is_looked_at_to_its_end(tmp_path):
    assert computed(tmp_path, PITCHED) == [
        "y[i, j] = (((x[i, j + 1] if j <= w - 2 else x[i, j]) + (x[i, 0] if j <= 0 else x[i, j - 1])) "
        "if j <= w - 1 else y[i, j])"
    ]


def test_where_blocks_are_large_each_size_is_long_once(tmp_path):
    (tmp_path / "k.cu").write_text(TAPS)
    contract = load_kernel(tmp_path / "k.cu").contract
    sizes = watched_sizes(contract)[0]
    assert len(sizes) >= 4
    assert all(max(row[s.name] for row in sizes) >= 5 for s in contract.sizes)  # a sum of fewer terms may be anything


@traced
def test_a_border_of_many_elements_at_the_smallest_sizes(tmp_path):
    (line,) = computed(tmp_path, HALO)
    for inside in ("i <= 5", "i <= a + 5", "j <= 11", "j <= 8*b + 11", "i2 <= 31", "i2 <= 256*c + 31"):
        assert f"if {inside} else" in line
    assert "-x[i - 1, j, i2] + x[i, j, i2] * 2.0" in line


def test_every_edge_of_what_is_written_is_among_what_is_looked_at():
    made = np.zeros((6, 256), bool)
    made[:, :5] = True
    assert all_edges_seen(made, [(2, 4), (0, 255)])
    assert not all_edges_seen(made, [(2, 3), (0, 255)])
    assert all_edges_seen(np.ones((6, 256), bool), [])
