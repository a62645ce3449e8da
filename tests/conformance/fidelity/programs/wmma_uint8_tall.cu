// a product of unsigned bytes in tiles of 32 x 8
// fidelity: in=uint8:any out=int32 ulp=0 launch=1x32 n=640 outs=256
// numpy: d[:512].reshape(32,16) @ d[512:].reshape(8,16).T
#include <mma.h>

__global__ void k(const unsigned char* x, int* out, int n) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 32, 8, 16, unsigned char, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, unsigned char, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> c;
  wmma::fill_fragment(c, 0);
  wmma::load_matrix_sync(a, x, 16);
  wmma::load_matrix_sync(b, x + 512, 16);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 8, wmma::mem_row_major);
}
