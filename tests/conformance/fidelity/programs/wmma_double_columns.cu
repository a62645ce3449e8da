// a product of doubles by columns and rows, rounded
// fidelity: in=float64:normal out=float64 ulp=4 abs=1e-14 launch=1x32 n=64 outs=64
// numpy: d[:32].reshape(4,8).T @ d[32:].reshape(4,8)
#include <mma.h>

__global__ void k(const double* x, double* out, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
  wmma::fill_fragment(c, 0.0);
  wmma::load_matrix_sync(a, x, 8);
  wmma::load_matrix_sync(b, x + 32, 8);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 8, wmma::mem_row_major);
}
