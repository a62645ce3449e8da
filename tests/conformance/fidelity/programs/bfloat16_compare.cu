// comparisons
// fidelity: in=uint16:bfloat16 out=uint16 ulp=0
#include <cuda_bf16.h>

__global__ void k(const unsigned short* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_bfloat16 a = __ushort_as_bfloat16(x[i]), b = __ushort_as_bfloat16(x[n - 1 - i]);
  out[i] = (a < b) + 2 * (a >= b) + 4 * __heq(a, b) + 8 * __hne(a, b);
}
