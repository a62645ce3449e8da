// a product of halves in tiles of 8 x 32
// fidelity: in=float16:halves out=float32 ulp=0 launch=1x32 n=640 outs=256
// numpy: d[:128].reshape(16,8).T @ d[128:].reshape(16,32)
#include <mma.h>

__global__ void k(const __half* x, float* out, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, __half, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, __half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 8, 32, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(a, x, 8);
  wmma::load_matrix_sync(b, x + 128, 32);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 32, wmma::mem_row_major);
}
