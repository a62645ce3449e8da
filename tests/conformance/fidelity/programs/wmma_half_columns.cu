// a product of halves, both by columns, as the result
// fidelity: in=float16:halves out=float32 ulp=0 launch=1x32 n=512 outs=256
// numpy: (d[:256].reshape(16,16).T @ d[256:].reshape(16,16).T).T
#include <mma.h>

__global__ void k(const __half* x, float* out, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(a, x, 16);
  wmma::load_matrix_sync(b, x + 256, 16);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_col_major);
}
