// half to int in all directions
// fidelity: in=float16:special out=int32 ulp=0
#include <cuda_fp16.h>

__global__ void k(const __half* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __half2int_rn(x[i]); break;
    case 1: out[i] = __half2int_rz(x[i]); break;
    case 2: out[i] = __half2int_ru(x[i]); break;
    case 3: out[i] = __half2int_rd(x[i]); break;
  }
}
