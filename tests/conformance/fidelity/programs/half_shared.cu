// half in shared memory, loaded as pairs
// fidelity: in=float16:normal out=float16 ulp=0
// numpy: x[i ^ 1]
#include <cuda_fp16.h>

__global__ void k(const __half* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ __align__(8) __half tile[256];
  tile[threadIdx.x] = x[i];
  __syncthreads();
  __half2 pair = reinterpret_cast<__half2*>(tile)[threadIdx.x / 2];
  out[i] = threadIdx.x & 1 ? __low2half(pair) : __high2half(pair);
}
