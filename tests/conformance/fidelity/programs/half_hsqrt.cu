// hsqrt within 0 ulp of a half
// fidelity: in=float16:positive out=float16 ulp=0
// numpy: np.sqrt(x)
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = hsqrt(x[i]);
}
