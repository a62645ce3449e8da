"""Partial results of blocks that are larger than most: sizes are watched at which there are several."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

SQUARES = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4194304, timed = 4194304}
// [args]
// x = {role = "in", dtype = "float32", shape = ["n"], low = -2, high = 2}
// part = {role = "out", dtype = "float32", shape = ["ceil_div(n, EACH)"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, EACH)"
// block = THREADS
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(const float *x, float *part, int n) {
  __shared__ float sums[THREADS];
  int t = threadIdx.x;
  float own = 0.0f;
  for (int i = blockIdx.x * EACH + t; i < min(n, (blockIdx.x + 1) * EACH); i += THREADS) own += x[i] * x[i];
  sums[t] = own;
  __syncthreads();
  for (int s = THREADS / 2; s > 0; s /= 2) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
  if (t == 0) part[blockIdx.x] = sums[0];
}
"""


@pytest.mark.parametrize(("each", "threads"), [(1024, 1024), (2048, 256)])
def test_partial_sums_of_large_blocks(each: int, threads: int, tmp_path: Path) -> None:
    text = SQUARES.replace("EACH", str(each)).replace("THREADS", str(threads)).replace("(blockIdx", "(int)(blockIdx")
    found = computed(tmp_path, text)
    assert f"x[{each}*i + k0] * x[{each}*i + k0]" in found[-1]
