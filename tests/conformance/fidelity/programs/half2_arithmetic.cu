// pairs: add, multiply, fma
// fidelity: in=float16:normal out=float16 ulp=0
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2 a = __halves2half2(x[i], x[n - 1 - i]), b = __half2half2(__float2half(0.75f));
  __half2 c = __hfma2(a, b, __hmul2_rn(a, a));
  out[i] = i & 1 ? __low2half(c) : __high2half(__hadd2_rn(c, b));
}
