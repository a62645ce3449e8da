// float to bfloat16 in all directions
// fidelity: in=float32:wide out=uint16 ulp=0
#include <cuda_bf16.h>

__global__ void k(const float* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i])); break;
    case 1: out[i] = __bfloat16_as_ushort(__float2bfloat16_rz(x[i])); break;
    case 2: out[i] = __bfloat16_as_ushort(__float2bfloat16_ru(x[i])); break;
    case 3: out[i] = __bfloat16_as_ushort(__float2bfloat16_rd(x[i])); break;
  }
}
