// a double rounds to half once
// fidelity: in=float64:halfrange out=float16 ulp=0
// numpy: d.astype('f2')
#include <cuda_fp16.h>

__global__ void k(const double* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __double2half(x[i]);
}
