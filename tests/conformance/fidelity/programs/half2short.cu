// half to short saturates
// fidelity: in=float16:special out=int16 ulp=0
#include <cuda_fp16.h>

__global__ void k(const __half* x, short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __half2short_rn(x[i]); break;
    case 1: out[i] = __half2short_rz(x[i]); break;
    case 2: out[i] = __half2short_ru(x[i]); break;
    case 3: out[i] = __half2short_rd(x[i]); break;
  }
}
