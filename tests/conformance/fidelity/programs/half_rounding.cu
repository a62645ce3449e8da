// floor, ceil, trunc, rint
// fidelity: in=float16:small out=float16 ulp=0
// numpy: np.choose(i & 3, [np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)])
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = hfloor(x[i]); break;
    case 1: out[i] = hceil(x[i]); break;
    case 2: out[i] = htrunc(x[i]); break;
    case 3: out[i] = hrint(x[i]); break;
  }
}
