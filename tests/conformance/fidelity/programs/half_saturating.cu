// saturating arithmetic
// fidelity: in=float16:normal out=float16 ulp=0
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __hadd(__hadd_sat(x[i], x[n - 1 - i]), __hmul_sat(x[i], x[i]));
}
