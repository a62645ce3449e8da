// bits of a half
// fidelity: in=float16:normal out=uint16 ulp=0
// numpy: x.view('u2') ^ 0x3c00
#include <cuda_fp16.h>

__global__ void k(const __half* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __half_as_ushort(x[i]) ^ __half_as_ushort(__ushort_as_half(0x3c00));
}
