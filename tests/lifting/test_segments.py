"""Results of several kinds in one array: segments, each as long as a size."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.expression import Affine
from fsr.lifting.conditions import _segments
from tests.lifting.lifted import computed

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

CHANNELS = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 64, timed = 16}
// l = {min = 1, max = 512, timed = 300}
// c = {min = 1, max = 512, timed = 128}
// [args]
// x = {role = "in", shape = ["b", "l", "c"]}
// y = {role = "out", shape = ["b", "COUNT * c"]}
// [launch]
// grid = ["ceil_div(c, 32)", "b"]
// block = [32, 4]
// ///
__global__ void k(const float *x, float *y, int l, int c) {
  __shared__ float sums[4][32], peaks[4][32];
  int t = threadIdx.x, u = threadIdx.y, j = blockIdx.x * 32 + t, b = blockIdx.y;
  sums[u][t] = 0.0f;
  peaks[u][t] = -1e30f;
  if (j < c)
    for (int r = u; r < l; r += 4) {
      float v = x[(b * l + r) * c + j];
      sums[u][t] += v;
      peaks[u][t] = fmaxf(peaks[u][t], v);
    }
  __syncthreads();
  if (u || j >= c) return;
  float sum = sums[0][t], peak = peaks[0][t];
  for (int w = 1; w < 4; ++w) { sum += sums[w][t]; peak = fmaxf(peak, peaks[w][t]); }
  float *row = y + b * COUNT * c + j;
  STORES
}"""
STORES = "row[0] = sum / l; row[c] = sum * 0.5f; row[2 * c] = peak;"


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "row[3 * c] = -peak;")])
def test_where_the_middle_segments_end_is_told_by_their_length(tmp_path: Path, count: int, more: str) -> None:
    *_, last = computed(tmp_path, CHANNELS.replace("COUNT", str(count)).replace("STORES", STORES + more))
    ends = ["j <= c - 1", *(f"j <= {n}*c - 1" for n in range(2, count))]
    assert all(end in last for end in ends)
    assert last.count(" if ") == len(ends)


@pytest.mark.parametrize("last", [Affine((("c", 3),), 0), Affine((("c", 40),), -1), Affine((("c", 2),), -1)])
def test_what_is_no_line_of_a_few_whole_segments_has_none(last: Affine) -> None:
    assert _segments(last) == []
