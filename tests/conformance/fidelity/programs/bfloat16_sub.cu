// __hsub of bfloat16
// fidelity: in=uint16:bfloat16 out=uint16 ulp=0
#include <cuda_bf16.h>

__global__ void k(const unsigned short* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_bfloat16 a = __ushort_as_bfloat16(x[i]), b = __ushort_as_bfloat16(x[n - 1 - i]);
  out[i] = __bfloat16_as_ushort(__hsub(a, b));
}
