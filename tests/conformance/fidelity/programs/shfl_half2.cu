// shuffle of a pair of halves
// fidelity: in=float16:normal out=float16 ulp=0
// numpy: (x[i ^ 1].astype('f4') + (i ^ 1)).astype('f2')
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2 v = __halves2half2(x[i], __float2half((float)i));
  v = __shfl_xor_sync(0xffffffffu, v, 1);
  out[i] = __hadd(__low2half(v), __high2half(v));
}
