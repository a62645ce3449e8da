// bfloat16 to float is exact
// fidelity: in=uint16:bfloat16 out=float32 ulp=0
// numpy: (x.astype('u4') << 16).view('f4')
#include <cuda_bf16.h>

__global__ void k(const unsigned short* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __bfloat162float(__ushort_as_bfloat16(x[i]));
}
