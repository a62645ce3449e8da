// products of tf32 from shared memory
// fidelity: in=float32:halves out=float32 ulp=0 launch=1x64 n=2048 outs=256
// numpy: d[:1024].reshape(16,64) @ d[1024:].reshape(16,64).T
#include <mma.h>

__global__ void k(const float* x, float* out, int n) {
  using namespace nvcuda;
  constexpr int depth = 64, pitch = depth + 4;
  __shared__ __align__(32) float left[16 * pitch], right[16 * pitch];
  for (int i = threadIdx.x; i < 16 * depth; i += blockDim.x) left[i / depth * pitch + i % depth] = nvcuda::wmma::__float_to_tf32(x[i]);
  for (int i = threadIdx.x; i < 16 * depth; i += blockDim.x)
    right[i / depth * pitch + i % depth] = nvcuda::wmma::__float_to_tf32(x[16 * depth + i]);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int at = 0; at < depth; at += 8) {
    wmma::load_matrix_sync(a, left + at, pitch);
    wmma::load_matrix_sync(b, right + at, pitch);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}
