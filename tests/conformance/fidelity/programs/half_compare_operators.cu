// relational operators
// fidelity: in=float16:special out=int32 ulp=0
// numpy: (x < x[::-1]) + 2 * (x == x) + 4 * (x != x[::-1])
#include <cuda_fp16.h>

__global__ void k(const __half* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (x[i] < x[n - 1 - i]) + 2 * (x[i] == x[i]) + 4 * (x[i] != x[n - 1 - i]);
}
