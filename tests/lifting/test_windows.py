"""Windows whose radius is a size divided by a number, and boxes within a wide rim."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import from_record, to_record
from fsr.computation.printing import lines
from tests.lifting.lifted import lifted

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

WINDOW = """// /// fsr
// entry = "smooth"
// [sizes]
// n = {{min = 1, max = 100000, timed = 100000}}
// taps = {{min = 1, max = 99, timed = 63}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// w = {{role = "in", shape = ["taps"]}}
// y = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// taps = {{value = "taps"}}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void smooth(const float* x, const float* w, float* y, int n, int taps) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {radius}
  float s = 0;
  for (int t = 0; t < taps; t++) {{
    int at = i + t - radius;
    if (at >= 0 && at < n) s += w[t] * x[at];
  }}
  y[i] = s;
}}
"""


@pytest.mark.parametrize(
    ("radius", "told"),
    [
        ("const int radius = taps / 2;", "(taps // 2)"),
        ("const int radius = (taps - 1) >> 1;", "((taps - 1) // 2)"),
    ],
)
def test_a_radius_of_half_a_windows_size_is_a_size(tmp_path, radius, told):
    found = lifted(tmp_path, WINDOW.format(radius=radius))
    assert found.computation is not None, found.why
    assert lines(found.computation) == [f"y[i] = sum(w[k0] * x[-{told} + i + k0] for k0 in range(taps) if inside)"]
    assert found.computation.sizes == ("n", "taps", told)
    assert from_record(to_record(found.computation)) == found.computation


def test_a_quotient_that_nothing_uses_is_no_size(tmp_path):
    found = lifted(tmp_path, WINDOW.format(radius="const int radius = 0; if (taps / 2 > 1000) return;"))
    assert found.computation is not None, found.why
    assert found.computation.sizes == ("n", "taps")


PRODUCT = """// /// fsr
// entry = "turned"
// [sizes]
// n = {min = 1, max = 100000, timed = 100000}
// [args]
// a = {role = "in", shape = ["n", "2"]}
// b = {role = "in", shape = ["n", "2"]}
// y = {role = "out", shape = ["n", "2"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void turned(const float* a, const float* b, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float re = a[2 * i], im = a[2 * i + 1], c = b[2 * i], s = b[2 * i + 1];
  y[2 * i] = re * c - im * s;
  y[2 * i + 1] = re * s + im * c;
}
"""


def test_a_product_of_complex_numbers_is_no_window(tmp_path):
    found = lifted(tmp_path, PRODUCT)
    assert found.computation is not None, found.why
    assert "sum(" not in "".join(lines(found.computation))


RIM = """// /// fsr
// entry = "smooth"
// [sizes]
// nx = {min = 7, max = 300, timed = 300}
// ny = {min = 7, max = 300, timed = 300}
// nz = {min = 7, max = 300, timed = 300}
// [args]
// to = {role = "inout", shape = ["nz", "ny", "nx"]}
// from = {role = "in", shape = ["nz", "ny", "nx"]}
// nx = {value = "nx"}
// ny = {value = "ny"}
// nz = {value = "nz"}
// [launch]
// grid = ["ceil_div(nx, 32)", "ceil_div(ny, 4)", "nz"]
// block = [32, 4]
// ///
__global__ void smooth(float* to, const float* from, int nx, int ny, int nz) {
  unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y, z = blockIdx.z;
  unsigned row = nx, layer = nx * ny, at = x + y * row + z * layer;
  if (x < 3 || x > nx - 4 || y < 3 || y > ny - 4 || z < 3 || z > nz - 4) return;
  to[at] = from[at] * -2.f + 0.25f * (from[at - 3] + from[at + 3]) + 0.5f * (from[at - 3 * row] + from[at + 3 * row])
         + 0.125f * (from[at - 3 * layer] + from[at + 3 * layer]);
}
"""


def test_a_box_within_a_rim_is_told_by_its_six_edges(tmp_path):
    found = lifted(tmp_path, RIM)
    assert found.computation is not None, found.why
    (line,) = lines(found.computation)
    for edge in ("i <= 2", "j <= 2", "i2 <= 2", "i <= nz - 4", "j <= ny - 4", "i2 <= nx - 4"):
        assert line.count(edge) == 1
    assert line.count("<=") == 6
