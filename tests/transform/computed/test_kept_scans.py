"""A running sum by one thread, and windows as differences of it: written anew as a scan and what reads it."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import check

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

WINDOWS = """// /// fsr
// [sizes]
// n = {min = 1, max = 300000, timed = 200000}
// w = {min = 1, max = 200, timed = 50}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [[launch]]
// entry = "running"
// grid = 1
// block = 1
// args = ["x", "s", "n"]
// [[launch]]
// entry = "apart"
// grid = "ceil_div(n, 128)"
// block = 128
// args = ["s", "y", "n", "w"]
// [scratch.s]
// dtype = "float32"
// count = "n + 1"
// ///
__global__ void running(const float* x, float* s, int n) {
  s[0] = 0.f;
  for (int i = 0; i < n; i++) s[i + 1] = s[i] + x[i];
}
__global__ void apart(const float* s, float* y, int n, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int first = max(i - w, 0), last = min(i + w, n - 1);
  y[i] = (s[last + 1] - s[first]) / (last - first + 1);
}
"""


@pytest.fixture(scope="module")
def windows(tmp_path_factory) -> Subject:
    path = tmp_path_factory.mktemp("windows") / "windows.cu"
    path.write_text(WINDOWS)
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    return Subject(
        kernel.baseline, parse_kernels(kernel.baseline.source), kernel.contract, False, "sm_90", found.computation
    )


@pytest.mark.parametrize("family", ["scan-look-back", "scan-tiles"])
def test_the_scan_is_dealt_out_and_the_windows_read_it(runner, windows, family):
    moves = check(runner, windows, family, [(1, 1), (300, 64), (5000, 7), (3, 100)], most=2)
    assert len(moves) > 4
