// hsin within 1 ulp of a half
// fidelity: in=float16:small out=float16 ulp=1
// numpy: np.sin(d)
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = hsin(x[i]);
}
