"""What lies about each point, put where it belongs: bands whose half width is an argument."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

BAND = """[sizes]
b = {min = 1, max = 16, timed = 8}
n = {min = 1, max = 700, timed = 600}
r = {min = 0, max = 600, timed = 100}

[args]
x = {role = "in", dtype = "float32", shape = ["b", "2 * r + 1", "n"]}
y = {role = "ROLE", dtype = "float32", shape = ["b", "n", "n"]}
"""
LAUNCH = """
[[launch]]
entry = "{}"
grid = {}
block = {}
args = {}
"""
A_THREAD_A_POINT = LAUNCH.format("spread", '"ceil_div(b * n, 64)"', "64", '["x", "y", "b", "n", "r"]')
SPREAD = """__global__ void spread(const float* x, float* y, int b, int n, int r) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= b * n) return;
  int i = at % n, p = at / n;
  for (int k = 0; k <= 2 * r; k++) {
    int j = i + k - r;
    if (j < 0 || j >= n) continue;
    y[(p * n + i) * n + j] = x[(p * (2 * r + 1) + k) * n + i];
  }
}
"""
WIPED_FIRST = LAUNCH.format("wipe", '"ceil_div(b * n * n, 256)"', "256", '["y", "b", "n"]') + LAUNCH.format(
    "place", '["ceil_div(n, 32)", "2 * r + 1", "b"]', "32", '["x", "y", "n", "r"]'
)
PLACE = """__global__ void wipe(float* y, int b, int n) {
  int at = blockIdx.x * 256 + threadIdx.x;
  if (at < b * n * n) y[at] = 0;
}
__global__ void place(const float* x, float* y, int n, int r) {
  int i = blockIdx.x * 32 + threadIdx.x, k = blockIdx.y, p = blockIdx.z;
  if (i >= n) return;
  float v = x[(p * gridDim.y + k) * n + i];
  int j = i + k - r;
  if (j >= 0 && j < n) y[(p * n + i) * n + j] = v;
}
"""
A_BLOCK_A_ROW = LAUNCH.format("rows", '["n", "b"]', "128", '["x", "y", "n", "r"]')
ROWS = """__global__ void rows(const float* x, float* y, int n, int r) {
  int i = blockIdx.x, p = blockIdx.y, first = max(0, i - r), last = min(n - 1, i + r);
  float* row = y + (p * n + i) * n;
  for (int j = threadIdx.x; j < n; j += blockDim.x) row[j] = 0;
  __syncthreads();
  for (int j = first + threadIdx.x; j <= last; j += blockDim.x) row[j] = x[(p * (2 * r + 1) + (j - i + r)) * n + i];
}
"""
FOUND = "y[i, j, i2] = ((x[i, i2 - j + r, j] if i2 <= j + r else {0}) if j <= i2 + r else {0})"


def lifted(tmp_path, contract: str, source: str) -> list[str]:
    (tmp_path / "k.cu").write_text(source)
    (tmp_path / "k.fsr.toml").write_text(contract)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    return lines(found.computation)


@pytest.mark.parametrize(("plan", "source"), [(WIPED_FIRST, PLACE), (A_BLOCK_A_ROW, ROWS)])
def test_a_band_is_told_by_its_half_width_however_it_is_written(tmp_path, plan, source):
    assert lifted(tmp_path, BAND.replace("ROLE", "out") + plan, source) == [FOUND.format("0.0")]


def test_beside_a_band_elements_keep_what_they_held(tmp_path):
    contract = BAND.replace("ROLE", "inout") + A_THREAD_A_POINT
    assert lifted(tmp_path, contract, SPREAD) == [FOUND.format("y[i, j, i2]")]


PLANES = """[sizes]
h = {min = 1, max = 32, timed = 30}
w = {min = 1, max = 32, timed = 30}
up = {min = 0, max = 30, timed = 20}
side = {min = 0, max = 30, timed = 20}

[args]
x = {role = "in", dtype = "float32", shape = ["2 * up + 1", "2 * side + 1", "h", "w"]}
y = {role = "inout", dtype = "float32", shape = ["h", "w", "h", "w"], value = 0}
"""
OF_PLANES = LAUNCH.format("about", '"h * w"', "64", '["x", "y", "h", "w", "up", "side"]')
ABOUT = """__global__ void about(const float* x, float* y, int h, int w, int up, int side) {
  int row = blockIdx.x / w, col = blockIdx.x % w, wide = 2 * side + 1;
  for (int k = threadIdx.x; k < (2 * up + 1) * wide; k += blockDim.x) {
    int to = row + k / wide - up, at = col + k % wide - side;
    if (to >= 0 && to < h && at >= 0 && at < w) y[(blockIdx.x * h + to) * w + at] = x[(k * h + row) * w + col];
  }
}
"""


def test_a_window_of_two_dimensions_about_each_pixel(tmp_path):
    (line,) = lifted(tmp_path, PLANES + OF_PLANES, ABOUT)
    assert "x[-i + i2 + up, i3 - j + side, i, j]" in line
    for edge in ("i2 <= i + up", "i <= i2 + up", "i3 <= j + side", "j <= i3 + side"):
        assert line.count(edge) == 1
    assert line.count("<=") == 4
