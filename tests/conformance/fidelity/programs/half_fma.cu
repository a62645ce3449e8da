// half fused multiply-add: one rounding
// fidelity: in=float16:normal out=float16 ulp=0
// numpy: (d * d[::-1] + np.float64(np.float16(0.1))).astype('f2')
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __hfma(x[i], x[n - 1 - i], __float2half(0.1f));
}
