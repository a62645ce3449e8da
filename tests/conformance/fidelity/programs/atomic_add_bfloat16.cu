// bfloat16 sum that stays exact
// fidelity: in=int32:small out=uint16 outs=2 ulp=0
#include <cuda_bf16.h>

__global__ void k(const int* x, unsigned short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(reinterpret_cast<__nv_bfloat16*>(out), __float2bfloat16((float)(i < 100 ? 1 : 0)));
}
