// half to float is exact
// fidelity: in=float16:special out=float32 ulp=0
// numpy: x.astype('f4')
#include <cuda_fp16.h>

__global__ void k(const __half* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __half2float(x[i]);
}
