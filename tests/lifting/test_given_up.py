"""What cannot be lifted is given up early, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

# Weights of a window whose place data decides, kept in local memory.
WINDOW = """// /// fsr
// entry = "spread"
// [sizes]
// n = {min = 1, max = 65536, timed = 65536}
// m = {min = 16, max = 4096, timed = 4096}
// [args]
// at = {role = "in", shape = ["n"], low = 0, high = 1}
// v = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = ["m"], value = 0}
// n = {value = "n"}
// m = {value = "m"}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// sum_length = "n"
// ///
__global__ void spread(const float *at, const float *v, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float weight[8], place = at[i] * m;
  int first = max((int)ceilf(place - 2), 0), last = min((int)floorf(place + 2), m - 1);
  for (int k = first; k <= last; k++) weight[k - first] = 1.f - fabsf(k - place) / 2;
  for (int k = first; k <= last; k++) atomicAdd(&y[k], v[i] * weight[k - first]);
}
"""
# Each element of a row of eight is made otherwise, by numbers that no index tells.
MIXED = """// /// fsr
// entry = "mixed"
// [sizes]
// n = {min = 1, max = 65536, timed = 65536}
// [args]
// x = {role = "in", shape = ["n", "4", "4", "4"]}
// y = {role = "out", shape = ["n", "4", "4", "4"]}
// [launch]
// grid = "n"
// block = [4, 4, 4]
// ///
__device__ __constant__ float c[4][4] = {{.5f, .4f, .3f, .2f}, {.9f, .1f, -.1f, -.9f}, {.6f, -.7f, -.8f, .5f},
                                         {.2f, -.3f, .3f, -.2f}};
__global__ void mixed(const float *x, float *y) {
  int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
  const float *cube = x + 64 * blockIdx.x;
  float sum = 0;
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++) sum += c[i][a] * c[j][b] * c[k][(a + b) % 4] * cube[16 * k + 4 * a + b];
  y[64 * blockIdx.x + 16 * k + 4 * j + i] = sum;
}
"""


def watched(tmp_path: Path, source: str, limit_s: float) -> Lifting:
    (tmp_path / "k.cu").write_text(source)
    kernel = load_kernel(tmp_path / "k.cu")
    return lift(kernel.contract, kernel.baseline, limit_s=limit_s)


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_reads_where_data_decides_in_local_memory(tmp_path):
    found = watched(tmp_path, WINDOW, 60)
    assert found.computation is None
    assert found.why == "what is read at an address that data decides is no element of a buffer"
    assert found.seconds < 20


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_the_reason_is_not_that_time_ran_out(tmp_path):
    found = watched(tmp_path, MIXED, 6)
    assert found.computation is None
    assert "too long" not in found.why


# Each minimum and maximum stands in several others: written out, millions of terms.
SORTED = """// /// fsr
// entry = "median"
// [sizes]
// w = {min = 1, max = 2048, timed = 1024}
// h = {min = 1, max = 2048, timed = 1024}
// [args]
// x = {role = "in", shape = ["h", "w"], dtype = "uint8"}
// y = {role = "out", shape = ["h", "w"], dtype = "uint8"}
// w = {value = "w"}
// h = {value = "h"}
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 8)"]
// block = [32, 8]
// ///
__global__ void median(const unsigned char *x, unsigned char *y, int w, int h) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, n = 0;
  if (i >= w || j >= h) return;
  unsigned char v[9];
  for (int b = -1; b <= 1; b++)
    for (int a = -1; a <= 1; a++) v[n++] = x[min(max(j + b, 0), h - 1) * w + min(max(i + a, 0), w - 1)];
  for (int a = 0; a < 8; a++)
    for (int b = a + 1; b < 9; b++) if (v[a] > v[b]) { unsigned char t = v[a]; v[a] = v[b]; v[b] = t; }
  y[j * w + i] = v[4];
}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_millions_of_terms(tmp_path):
    found = watched(tmp_path, SORTED, 60)
    assert found.computation is None
    assert "many steps" in found.why


# One flag of many threads: who writes it last tells nothing of the others.
FLAG = """// /// fsr
// entry = "settled"
// [sizes]
// n = {{min = 1, max = 65536, timed = 65536}}
// [args]
// a = {{role = "in", shape = ["n"]}}
// b = {{role = "in", shape = ["n"]}}
// y = {{role = "out", shape = ["n"]}}
// flag = {{role = "inout", dtype = "int32", shape = [1], value = {start}}}
// n = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void settled(const float *a, const float *b, float *y, int *flag, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float next = a[i] * 0.5f + b[i];
  y[i] = next;
  if (fabsf(next - a[i]) > 1e-6f) {{ {mark} }}
}}
"""


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
@pytest.mark.parametrize(
    ("start", "mark"), [(1, "atomicAnd(flag, 0);"), (1, "*flag = 0;"), (0, "atomicOr(flag, ~0);"), (0, "flag[0] = 3;")]
)
def test_a_flag_that_any_of_many_threads_sets(start: int, mark: str, tmp_path):
    found = watched(tmp_path, FLAG.format(start=start, mark=mark), 60)
    assert found.computation is None
    assert found.why.startswith("several threads write one element")


@pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")
def test_a_count_of_many_threads_is_a_sum(tmp_path):
    found = watched(tmp_path, FLAG.format(start=0, mark="atomicAdd(flag, 1);"), 60)
    assert found.computation is not None, found.why
