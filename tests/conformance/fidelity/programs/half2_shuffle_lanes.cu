// swapping and broadcasting the lanes of a pair
// fidelity: in=float16:normal out=float32 ulp=0
// numpy: x[::-1].astype('f4') - x.astype('f4') + x[::-1].astype('f4') + x.astype('f4')
#include <cuda_fp16.h>

__global__ void k(const __half* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2 a = __halves2half2(x[i], x[n - 1 - i]);
  float2 f = __half22float2(__lowhigh2highlow(a));
  out[i] = f.x - f.y + __low2float(__high2half2(a)) + __high2float(__low2half2(a));
}
