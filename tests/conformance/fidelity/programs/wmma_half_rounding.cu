// a product of halves, rounded as sums are
// fidelity: in=float16:normal out=float32 ulp=2 abs=4e-5 launch=1x32 n=512 outs=256
// numpy: d[:256].reshape(16,16) @ d[256:].reshape(16,16).T
#include <mma.h>

__global__ void k(const __half* x, float* out, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(a, x, 16);
  wmma::load_matrix_sync(b, x + 256, 16);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}
