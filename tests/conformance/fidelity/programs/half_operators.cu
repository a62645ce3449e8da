// operators of __half, each rounded
// fidelity: in=float16:normal out=float16 ulp=1
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half a = x[i], b = x[n - 1 - i];
  __half c = a - b;
  c += a;
  out[i] = -c / b;
}
