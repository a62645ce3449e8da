// products of bfloat16 in tiles of 8 x 32
// fidelity: in=float32:halves out=float32 ulp=0 launch=1x64 n=2560 outs=256
// numpy: d[:512].reshape(8,64) @ d[512:].reshape(32,64).T
#include <mma.h>

__global__ void k(const float* x, float* out, int n) {
  using namespace nvcuda;
  constexpr int depth = 64, pitch = depth + 8;
  __shared__ __align__(32) __nv_bfloat16 left[8 * pitch], right[32 * pitch];
  for (int i = threadIdx.x; i < 8 * depth; i += blockDim.x) left[i / depth * pitch + i % depth] = __float2bfloat16(x[i]);
  for (int i = threadIdx.x; i < 32 * depth; i += blockDim.x)
    right[i / depth * pitch + i % depth] = __float2bfloat16(x[8 * depth + i]);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, __nv_bfloat16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, __nv_bfloat16, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 8, 32, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int at = 0; at < depth; at += 16) {
    wmma::load_matrix_sync(a, left + at, pitch);
    wmma::load_matrix_sync(b, right + at, pitch);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(out, c, 32, wmma::mem_row_major);
}
