// float to tf32: to nearest, ties away from zero
// fidelity: in=float32:wide out=float32 ulp=0
// numpy: ((x.view('u4') + 0x1000) & 0xffffe000).view('f4')
#include <mma.h>

__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = nvcuda::wmma::__float_to_tf32(x[i]);
}
