// bfloat16 to int, nearest and towards zero
// fidelity: in=uint16:bfloat16 out=int32 ulp=0
#include <cuda_bf16.h>

__global__ void k(const unsigned short* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_bfloat16 a = __ushort_as_bfloat16(x[i]);
  out[i] = i & 1 ? __bfloat162int_rn(a) : __bfloat162int_rz(a);
}
