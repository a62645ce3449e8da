"""Windows whose radius is a size divided by a number, and boxes within a wide rim."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import from_record, to_record
from fsr.computation.printing import lines
from fsr.lifting.lift import Lifting, lift
from fsr.runs.kernel import load_kernel

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


def lifted(tmp_path, text: str) -> Lifting:
    (tmp_path / "k.cu").write_text(text)
    kernel = load_kernel(tmp_path / "k.cu")
    return lift(kernel.contract, kernel.baseline, limit_s=60)


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
