"""Aggressive but right kernels, as a search proposes them: right results, and a recorder that stays silent."""

from __future__ import annotations

import numpy as np
import pytest

RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("f4")


def nothing(*shape):
    return np.full(shape, np.nan, "f4")


TILED_GEMM = """
template <int T> __global__ void gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                      int m, int n, int k) {
  __shared__ float sa[2][T][T + 1], sb[2][T][T + 1];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, col = blockIdx.x * T + tx;
  float sum = 0;
  auto load = [&](int stage, int k0) {
    sa[stage][ty][tx] = row < m && k0 + tx < k ? a[row * k + k0 + tx] : 0.f;
    sb[stage][ty][tx] = col < n && k0 + ty < k ? b[(k0 + ty) * n + col] : 0.f;
  };
  load(0, 0);
  int stage = 0;
  for (int k0 = 0; k0 < k; k0 += T, stage ^= 1) {
    __syncthreads();
    if (k0 + T < k) load(stage ^ 1, k0 + T);
    #pragma unroll
    for (int i = 0; i < T; i++) sum += sa[stage][ty][i] * sb[stage][i][tx];
  }
  if (row < m && col < n) c[row * n + col] = sum;
}"""

SOFTMAX = """
__device__ float warp_max(float v) { for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d)); return v; }
__device__ float warp_sum(float v) { for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d); return v; }
template <int THREADS> __global__ void __launch_bounds__(THREADS) softmax(const float* x, float* y, int cols) {
  __shared__ float part[THREADS / 32], whole;
  const float4* row = reinterpret_cast<const float4*>(x + (size_t)blockIdx.x * cols);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float m = -INFINITY;
  for (int j = threadIdx.x; j < cols / 4; j += THREADS) {
    float4 v = __ldg(&row[j]);
    m = fmaxf(fmaxf(m, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
  }
  m = warp_max(m);
  if (lane == 0) part[warp] = m;
  __syncthreads();
  if (warp == 0) {
    m = warp_max(lane < THREADS / 32 ? part[lane] : -INFINITY);
    if (lane == 0) whole = m;
  }
  __syncthreads();
  m = whole;
  float s = 0;
  for (int j = threadIdx.x; j < cols; j += THREADS) s += expf(x[(size_t)blockIdx.x * cols + j] - m);
  s = warp_sum(s);
  __syncthreads();
  if (lane == 0) part[warp] = s;
  __syncthreads();
  if (threadIdx.x == 0) { s = 0; for (int w = 0; w < THREADS / 32; w++) s += part[w]; whole = s; }
  __syncthreads();
  for (int j = threadIdx.x; j < cols; j += THREADS)
    y[(size_t)blockIdx.x * cols + j] = expf(x[(size_t)blockIdx.x * cols + j] - m) / whole;
}"""

TRANSPOSE = """
__global__ void transpose(const float* in, float* out, int rows, int cols) {
  extern __shared__ float tile[];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < cols && y + j < rows) tile[(threadIdx.y + j) * 33 + threadIdx.x] = in[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < cols) out[(y + j) * rows + x] = tile[threadIdx.x * 33 + threadIdx.y + j];
}"""

HISTOGRAM = """
__global__ void histogram(const int* x, int* io_bins, int n) {
  __shared__ int mine[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned same = __match_any_sync(__activemask(), x[i]);
    if (__ffs(same) - 1 == (int)(threadIdx.x & 31)) atomicAdd(&mine[x[i]], __popc(same));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(&io_bins[i], mine[i]);
}"""

SCAN = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void scan(const int* x, int* out, int n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ int sums[8];
  int i = block.thread_rank(), v = i < n ? x[i] : 0;
  for (int d = 1; d < 32; d *= 2) { int u = warp.shfl_up(v, d); if (warp.thread_rank() >= d) v += u; }
  if (warp.thread_rank() == 31) sums[i / 32] = v;
  block.sync();
  for (int w = 0; w < i / 32; w++) v += sums[w];
  if (i < n) out[i] = v;
}"""


def softmax_of(x):
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


CASES = {
    "gemm": (TILED_GEMM, "gemm<16>", (3, 3, 1), (16, 16, 1), 0,
             {"a": normal(40, 37), "b": normal(37, 45), "out_c": nothing(40, 45), "m": 40, "n": 45, "k": 37},
             lambda v: v["a"].astype("f8") @ v["b"]),
    "softmax": (SOFTMAX, "softmax<128>", 5, 128, 0,
                {"x": normal(5, 600), "out_y": nothing(5, 600), "cols": 600}, lambda v: softmax_of(v["x"])),
    "transpose": (TRANSPOSE, "transpose", (3, 2, 1), (32, 8, 1), 32 * 33 * 4,
                  {"in_": normal(50, 70), "out": nothing(70, 50), "rows": 50, "cols": 70},
                  lambda v: v["in_"].T),
    "histogram": (HISTOGRAM, "histogram", 3, 96, 0,
                  {"x": RANDOM.integers(0, 64, 1000).astype("i4"), "io_bins": np.zeros(64, "i4"), "n": 1000},
                  lambda v: np.bincount(v["x"], minlength=64)),
    "scan": (SCAN, "scan", 1, 256, 0,
             {"x": RANDOM.integers(0, 9, 200).astype("i4"), "out": np.zeros(200, "i4"), "n": 200},
             lambda v: np.cumsum(v["x"])),
}  # fmt: skip


@pytest.mark.parametrize("compiler", ["clang++-22", "g++"])
@pytest.mark.parametrize("name", CASES)
def test_right_kernels_compute_and_record_without_a_fault(run, record, name, compiler):
    source, entry, grid, block, shared, args, reference = CASES[name]
    output = next(argument for argument in args if argument.startswith(("out", "io")))
    results = run(source, entry, grid, block, shared, compiler=compiler, **args)
    np.testing.assert_allclose(results[output], reference(args), rtol=2e-5, atol=2e-5)
    profile = record(source, entry, grid, block, shared, compiler=compiler, **args)
    assert profile.faults == ()
    assert profile.launches[0].sites
    assert all(s.line > 0 for s in profile.launches[0].sites)
