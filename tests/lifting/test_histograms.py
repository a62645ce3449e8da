"""Counting where data tells: whoever holds the counts on the way, the bins begin with what the plan sets them to."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """[sizes]
n = {min = 1, max = 5000000, timed = 4000000}

[args]
v = {role = "in", dtype = "int32", shape = ["n"], low = 0, high = 63}
w = {role = "in", dtype = "float32", shape = ["n"]}
h = {role = "out", dtype = "TYPE", shape = [64]}
"""
LAUNCH = """
[[launch]]
entry = "{}"
grid = {}
block = {}
args = {}
"""
SCRATCH = """
[scratch.p]
dtype = "int32"
count = "{}"
"""
CLEARED = LAUNCH.format("clear", "1", "64", '["h"]') + LAUNCH.format(
    "count", '"ceil_div(n, 512)"', "128", '["v", "w", "h", "n"]'
)
PARTS = '"ceil_div(n, 1024)"'
OF_BLOCKS = (
    LAUNCH.format("count", PARTS, "256", '["v", "p", "n"]')
    + LAUNCH.format("total", "64", "128", f'["p", "h", {PARTS}]')
    + SCRATCH.format("64 * ceil_div(n, 1024)")
)
OF_THREADS = (
    LAUNCH.format("count", "1", "64", '["v", "p", "n"]')
    + LAUNCH.format("total", "1", "64", '["p", "h", "64"]')
    + SCRATCH.format("64 * 64")
)
CLEAR = "__global__ void clear(T* h) { h[threadIdx.x] = BEGIN; }"
COUNT = """
__global__ void count(const int* v, const float* w, T* h, int n) {
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  for (int i = start; i < start + 4 && i < n; i++) ADDED;
}
"""
BY_WARPS = """
__global__ void count(const int* v, const float* w, T* h, int n) {
  __shared__ T own[4][64];
  for (int k = threadIdx.x; k < 4 * 64; k += blockDim.x) (&own[0][0])[k] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&own[threadIdx.x / 32][v[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < 64; b += blockDim.x) atomicAdd(&h[b], own[0][b] + own[1][b] + own[2][b] + own[3][b]);
}
"""
BY_BLOCKS = """__global__ void count(const int* v, T* p, int n) {
  __shared__ T own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * 1024 + threadIdx.x;
  for (int k = 0; k < 4; k++, i += 256) if (i < n) atomicAdd(own + v[i], 1);
  __syncthreads();
  if (threadIdx.x < 64) p[blockIdx.x * 64 + threadIdx.x] = own[threadIdx.x];
}
__global__ void total(const T* p, T* h, int parts) {
  __shared__ T s[128];
  T t = 0;
  for (int k = threadIdx.x; k < parts; k += 128) t += p[k * 64 + blockIdx.x];
  s[threadIdx.x] = t;
  for (int d = 64; d > 0; d >>= 1) {
    __syncthreads();
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
  }
  if (threadIdx.x == 0) h[blockIdx.x] = s[0];
}
"""
BY_THREADS = """__global__ void count(const int* v, T* p, int n) {
  T* own = p + threadIdx.x * 64;
  for (int k = 0; k < 64; k++) own[k] = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) own[v[i]]++;
}
__global__ void total(const T* p, T* h, int parts) {
  T t = 0;
  for (int k = 0; k < parts; k++) t += p[k * 64 + threadIdx.x];
  h[threadIdx.x] = t;
}
"""


def lifted(tmp_path, plan: str, source: str, type_: str, dtype: str) -> list[str]:
    (tmp_path / "k.cu").write_text(f"typedef {type_} T;\n{source}")
    (tmp_path / "k.fsr.toml").write_text(HEAD.replace("TYPE", dtype) + plan)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    return lines(found.computation)


@pytest.mark.parametrize(
    ("plan", "source", "type_", "dtype"),
    [
        (CLEARED, CLEAR.replace("BEGIN", "0") + COUNT.replace("ADDED", "atomicAdd(&h[v[i]], 1)"), "int", "int32"),
        (CLEARED, CLEAR.replace("BEGIN", "0") + BY_WARPS, "unsigned", "uint32"),
        (OF_BLOCKS, BY_BLOCKS, "int", "int32"),
        (OF_THREADS, BY_THREADS, "int", "int32"),
    ],
)
def test_counts_are_added_to_nought(tmp_path, plan, source, type_, dtype):
    assert lifted(tmp_path, plan, source, type_, dtype) == ["h[i] = 0", "h[int64(v[i])] += 1"]


def test_bins_begin_with_what_the_plan_sets(tmp_path):
    source = CLEAR.replace("BEGIN", "threadIdx.x") + COUNT.replace("ADDED", "atomicAdd(&h[63 - v[i]], 2)")
    assert lifted(tmp_path, CLEARED, source, "int", "int32") == ["h[i] = i", "h[int64(-v[i]) + 63] += 2"]


def test_the_bound_that_a_maximum_begins_with_shows_where_nothing_went(tmp_path):
    source = CLEAR.replace("BEGIN", "-5") + COUNT.replace("ADDED", "atomicMax(&h[v[i]], i)")
    assert lifted(tmp_path, CLEARED, source, "int", "int32") == ["h[i] = -5", "h[int64(v[i])] max= i"]


def test_weights_are_added_to_floating_bins(tmp_path):
    source = CLEAR.replace("BEGIN", "0") + COUNT.replace("ADDED", "atomicAdd(&h[v[i]], w[i] * w[i])")
    assert lifted(tmp_path, CLEARED, source, "float", "float32") == ["h[i] = 0.0", "h[int64(v[i])] += w[i] * w[i]"]
