// pairs: add, fma, maximum
// fidelity: in=uint16:bfloat16 out=uint16 ulp=0
#include <cuda_bf16.h>

__global__ void k(const unsigned short* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_bfloat162 a = __halves2bfloat162(__ushort_as_bfloat16(x[i]), __ushort_as_bfloat16(x[n - 1 - i]));
  __nv_bfloat162 b = __hmax2(__hfma2(a, a, a), __float2bfloat162_rn(0.25f));
  out[i] = __bfloat16_as_ushort(i & 1 ? __low2bfloat16(b) : __high2bfloat16(b));
}
