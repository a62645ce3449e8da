// a product of doubles
// fidelity: in=float64:halves out=float64 ulp=0 launch=1x32 n=64 outs=64
// numpy: d[:32].reshape(8,4) @ d[32:].reshape(8,4).T
#include <mma.h>

__global__ void k(const double* x, double* out, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
  wmma::fill_fragment(c, 0.0);
  wmma::load_matrix_sync(a, x, 4);
  wmma::load_matrix_sync(b, x + 32, 4);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 8, wmma::mem_row_major);
}
