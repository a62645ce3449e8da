"""compute-sanitizer on a real GPU: finds what is planted, is silent on a right kernel."""

from __future__ import annotations

import numpy as np
import pytest
from device_conformance import given, int32, launch
from gpu_bench import image_of

from fsr.backends.backend import ToolReport
from fsr.backends.cuda.device import CudaDevice
from fsr.backends.cuda.sanitizer import sanitize
from fsr.records import Role

SOURCE = """extern "C" __global__ void good(const float* x, float* y, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = s[threadIdx.x] + s[255 - threadIdx.x] * 0.0f;
}
extern "C" __global__ void beyond(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = x[0];
}
extern "C" __global__ void racing(const float* x, float* y, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void unread(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] + x[i];
}
"""
BEYOND_LINE = 10
ENTRIES = ("good", "beyond", "racing", "unread")
N = 512


def reports(cuda: CudaDevice, entry: str, *tools: str) -> list[ToolReport]:
    grid = 1 if entry == "racing" else 3
    plan = [launch(entry, "x", "y", int32(N), grid=grid, block=256)]
    x, y = np.arange(N, dtype=np.float32), np.full(N, np.nan, np.float32)
    image = image_of(cuda, SOURCE, *ENTRIES, lines=True)
    found = sanitize(image, plan, [given("x", x, Role.IN), given("y", y, Role.OUT)], tools=tools, timeout_s=100)
    for report in found:
        if not report.available:
            pytest.skip(report.note)
    return found


@pytest.mark.timeout(500)
def test_a_right_kernel_passes_all_four_tools_in_silence(cuda: CudaDevice) -> None:
    for report in reports(cuda, "good", "memcheck", "racecheck", "initcheck", "synccheck"):
        assert report.silent, (report.tool, report.faults)


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("entry", "tool", "kind"),
    [
        ("beyond", "memcheck", "out-of-bounds"),
        ("racing", "racecheck", "race"),
        ("unread", "initcheck", "uninitialised"),
    ],
)
def test_a_planted_fault_is_found(cuda: CudaDevice, entry: str, tool: str, kind: str) -> None:
    (report,) = reports(cuda, entry, tool)
    assert kind in {fault.kind for fault in report.faults}, report
    if entry == "beyond":
        assert BEYOND_LINE in {fault.line for fault in report.faults}
