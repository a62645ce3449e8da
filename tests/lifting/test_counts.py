"""Counts of elements along several dimensions: a mean of all that a channel has divides by their product."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

CHANNELS = """// /// fsr
// entry = "k"
// [sizes]
// images = {min = 1, max = 16, timed = 8}
// channels = {min = 1, max = 64, timed = 16}
// pixels = {min = 1, max = 1000, timed = 900}
// [args]
// x = {role = "in", shape = ["images", "channels", "pixels"]}
// y = {role = "out", shape = ["channels"]}
// [launch]
// grid = "channels"
// block = 32
// ///
__global__ void k(const float *x, float *y, int images, int channels, int pixels) {
  int c = blockIdx.x;
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int n = 0; n < images; n++)
      for (int p = 0; p < pixels; p++) sum += x[(n * channels + c) * pixels + p];
    y[c] = sum / (COUNT);
  }
}"""


@pytest.mark.parametrize(
    ("count", "told"),
    [
        ("float(images * pixels)", "(images * pixels)"),
        ("images * pixels - 1", "(images * pixels - 1)"),
        ("2 * pixels * images * channels", "(channels * 2*images * pixels)"),
    ],
)
def test_a_divisor_that_is_a_product_of_sizes(tmp_path, count, told):
    (tmp_path / "k.cu").write_text(CHANNELS.replace("COUNT", count))
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == [
        "_sum[i] = sum(x[k0, i, k1] for k0 in range(images) for k1 in range(pixels))",
        f"y[i] = _sum[i] / {told}",
    ]
