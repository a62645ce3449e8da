"""Windows whose radius is a size divided by a number, and boxes within a wide rim."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import from_record, to_record
from fsr.computation.printing import lines
from tests.lifting.lifted import computed, lifted

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


DECIMATED = """// /// fsr
// entry = "decimate"
// [sizes]
// outs = {min = 1, max = 4096, timed = 2000}
// rate = {min = 1, max = 16, timed = 10}
// channels = {min = 1, max = 8, timed = 4}
// samples = "outs * rate"
// [args]
// x = {shape = ["channels", "samples", 2], low = -1, high = 1}
// taps = {shape = [64, 2], low = -1, high = 1}
// y = {role = "out", shape = ["channels", "outs", 2]}
// [launch]
// grid = ["outs", "channels"]
// block = 64
// ///
__global__ void decimate(const float2 *x, const float2 *taps, float2 *y, int rate, int samples) {
  __shared__ float2 part[64];
  int at = blockIdx.x * rate + threadIdx.x, t = threadIdx.x;
  float2 s = make_float2(0, 0), w = taps[t];
  if (at < samples) s = x[blockIdx.y * samples + at];
  part[t] = PRODUCT;
  for (int half = 32; half; half /= 2) {
    __syncthreads();
    if (t < half) part[t] = make_float2(part[t].x + part[t + half].x, part[t].y + part[t + half].y);
  }
  if (t == 0) y[blockIdx.y * gridDim.x + blockIdx.x] = part[0];
}
"""
HERE = "x[i, j * rate + k0, 0]"


@pytest.mark.parametrize(
    ("product", "found"),
    [
        (
            "make_float2(s.x * w.x, s.x * w.y)",
            [f"y[i, j, i2] = sum(taps[k0, i2] * {HERE} for k0 in range(64) if inside)"],
        ),
        (
            "make_float2(s.x * w.x - s.y * w.y, s.x * w.y + s.y * w.x)",
            [
                "_sum[i, j] = sum(-(taps[k0, 1] * x[i, j * rate + k0, 1]) for k0 in range(64) if inside)",
                f"_sum2[i, j] = sum(taps[k0, 0] * {HERE} for k0 in range(64) if inside)",
                "_sum3[i, j] = sum(taps[k0, -k1 + 1] * x[i, j * rate + k0, k1] for k0 in range(64) for k1 in range(2) "
                "if inside)",
                "y[i, j, i2] = ((_sum[i, j] + _sum2[i, j]) if i2 <= 0 else _sum3[i, j])",
            ],
        ),
    ],
    ids=["components", "complex numbers"],
)
def test_windows_of_records_go_along_the_taps(tmp_path, product: str, found: list[str]) -> None:
    """Lines too short for a whole window at any size that is watched: along the samples no length tells how many."""
    assert computed(tmp_path, DECIMATED.replace("PRODUCT", product)) == found


SHIFTED = """// /// fsr
// entry = "causal"
// [sizes]
// rows = {min = 1, max = 4096, timed = 2048}
// taps = {min = 2, max = 8, timed = 4}
// steps = {min = 1, max = 2048, timed = 512}
// [args]
// x = {shape = ["rows", "steps"], low = -4, high = 4}
// w = {shape = ["rows", "taps"], low = -1, high = 1}
// before = {shape = ["rows", "taps"], low = -4, high = 4}
// y = {role = "out", shape = ["rows", "steps"]}
// after = {role = "out", shape = ["rows", "taps"]}
// rows = {value = "rows"}
// taps = {value = "taps"}
// steps = {value = "steps"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// ///
__global__ void causal(const float* x, const float* w, const float* before, float* y, float* after, int rows, int taps,
                       int steps) {
  int r = blockIdx.x * 64 + threadIdx.x;
  float window[8];
  if (r >= rows || taps > 8) return;
  for (int k = 0; k < taps; k++) window[k] = before[r * taps + k];
  for (int t = 0; t < steps; t++) {
    for (int k = 0; k < taps - 1; k++) window[k] = window[k + 1];
    window[taps - 1] = x[r * steps + t];
    float sum = 0;
    for (int k = 0; k < taps; k++) sum += window[k] * w[r * taps + k];
    y[r * steps + t] = sum / (1.0f + expf(-sum));
  }
  for (int k = 0; k < taps; k++) after[r * taps + k] = window[k];
}
"""


def test_a_window_that_is_shifted_from_step_to_step_lies_in_two_buffers(tmp_path) -> None:
    """A compiler moves it by memmove, part of it over itself. What is behind ``exp`` lacks one sum where the window is
    full, and which buffer the last elements come from is told by what one row is longer than the other."""
    old, new = "before[i, j + k0 + 1] * w[i, k0]", "w[i, k0] * x[i, j + k0 - taps + 1]"
    found = lifted(tmp_path, SHIFTED)
    assert found.computation is not None, found.why
    *sums, y, after = lines(found.computation)
    told = {s.partition(" = ")[2] for s in sums}
    assert told == {f"sum({one} for k0 in range(taps) if inside)" for x in (old, new) for one in (x, f"-({x})")}
    assert y.count("exp(") == 1
    assert after == "after[i, j] = (before[i, j + steps] if j + steps <= taps - 1 else x[i, j + steps - taps])"
