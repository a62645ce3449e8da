// maximum and minimum: NaN loses
// fidelity: in=float16:nonzero out=float16 ulp=0
// numpy: np.where(i & 1, np.fmax(x, x[::-1]), np.fmin(x, x[::-1]))
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i & 1 ? __hmax(x[i], x[n - 1 - i]) : __hmin(x[i], x[n - 1 - i]);
}
