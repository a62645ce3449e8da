"""Rows of short integers less their mean, clamped, written where they stood: lifted, and folded as rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.lift import lift
from tests.transform.computed.test_families import check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

CENTRED = """// /// fsr
// entry = "centred"
// [sizes]
// rows = {min = 1, max = 20000, timed = 16384}
// cols = {min = 1, max = 8000, timed = 4096}
// [args]
// x = {role = "inout", shape = ["rows", "cols"], low = 0, high = 255}
// level = {role = "in", shape = ["cols"], low = 0, high = 255}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = 64
// ///
__global__ void centred(unsigned short* x, const float* level, int cols) {
  __shared__ float mean;
  unsigned short* row = x + (size_t)blockIdx.x * cols;
  if (threadIdx.x == 0) {
    float s = 0;
    for (int c = 0; c < cols; c++) s += row[c];
    mean = s / cols;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 64) {
    const float v = row[c] - mean + level[c];
    if (v < 0) row[c] = 0;
    else if (v > LIMIT) row[c] = LIMIT;
    else row[c] = (unsigned short)v;
  }
}
"""


@pytest.mark.parametrize("limit", ["4", "255"])
def test_clamped_rows(runner, limit):
    subject = subject_of(CENTRED.replace("LIMIT", limit))
    found = lift(subject.contract, subject.candidate, limit_s=60)
    assert found.computation is not None, found.why
    subject = replace(subject, computation=found.computation)
    check(runner, subject, "fold-rows", [(3, 8), (5, 64), (2, 130), (1, 1)], most=2)
