// absolute value and negation act on the sign bit
// fidelity: in=float16:special out=float16 ulp=0
// numpy: np.where(i & 1, np.abs(x), -x)
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i & 1 ? __habs(x[i]) : __hneg(x[i]);
}
