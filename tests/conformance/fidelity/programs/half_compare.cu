// comparisons, ordered and unordered
// fidelity: in=float16:special out=int32 ulp=0
#include <cuda_fp16.h>

__global__ void k(const __half* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half a = x[i], b = x[n - 1 - i];
  out[i] = __hlt(a, b) + 2 * __hge(a, b) + 4 * __heq(a, b) + 8 * __hneu(a, b) + 16 * __hltu(a, b) + 32 * __hisnan(a);
}
