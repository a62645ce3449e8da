// int to bfloat16
// fidelity: in=int32:any out=uint16 ulp=0
#include <cuda_bf16.h>

__global__ void k(const int* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __bfloat16_as_ushort(__int2bfloat16_rn(x[i]));
}
