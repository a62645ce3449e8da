// products of bfloat16, rounded as sums are
// fidelity: in=float32:normal out=float32 ulp=2 abs=1e-4 launch=1x64 n=2048 outs=256
// numpy: (lambda v: v[:1024].reshape(16,64) @ v[1024:].reshape(16,64).T)((lambda u: (((u + 0x7fff + (u >> 16 & 1)) >> 16) << 16).astype('u4').view('f4').astype('f8'))(x.view('u4').astype('u8')))
#include <mma.h>

__global__ void k(const float* x, float* out, int n) {
  using namespace nvcuda;
  constexpr int depth = 64, pitch = depth + 8;
  __shared__ __align__(32) __nv_bfloat16 left[16 * pitch], right[16 * pitch];
  for (int i = threadIdx.x; i < 16 * depth; i += blockDim.x) left[i / depth * pitch + i % depth] = __float2bfloat16(x[i]);
  for (int i = threadIdx.x; i < 16 * depth; i += blockDim.x)
    right[i / depth * pitch + i % depth] = __float2bfloat16(x[16 * depth + i]);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int at = 0; at < depth; at += 16) {
    wmma::load_matrix_sync(a, left + at, pitch);
    wmma::load_matrix_sync(b, right + at, pitch);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}
