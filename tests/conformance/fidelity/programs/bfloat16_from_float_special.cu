// infinities, NaN, zeros and overflow
// fidelity: in=float32:special out=uint16 ulp=0
#include <cuda_bf16.h>

__global__ void k(const float* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i]));
}
