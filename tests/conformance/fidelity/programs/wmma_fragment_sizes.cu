// how many elements of each matrix a lane holds
// fidelity: in=int32:any out=int32 ulp=0 launch=1x1 n=1 outs=8
// numpy: np.array([16, 16, 8, 8, 4, 4, 1, 2])
#include <mma.h>

__global__ void k(const int* x, int* out, int n) {
  using namespace nvcuda::wmma;
  out[0] = fragment<matrix_a, 16, 16, 16, __half, row_major>::num_elements;
  out[1] = fragment<matrix_b, 32, 8, 16, __half, col_major>::num_elements;
  out[2] = fragment<accumulator, 8, 32, 16, float>::num_elements;
  out[3] = fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major>::num_elements;
  out[4] = fragment<matrix_a, 8, 32, 16, signed char, row_major>::num_elements;
  out[5] = fragment<matrix_b, 16, 16, 8, precision::tf32, row_major>::num_elements;
  out[6] = fragment<matrix_a, 8, 8, 4, double, row_major>::num_elements;
  out[7] = fragment<accumulator, 8, 8, 4, double>::num_elements;
}
