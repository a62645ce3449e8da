// an asynchronous copy of 16 bytes a thread
// fidelity: in=int32:any out=int32 ulp=0 launch=1x64
// numpy: x.reshape(64, 4)[::-1].ravel()
#include <cuda_pipeline.h>

__global__ void k(const int* x, int* out, int n) {
  __shared__ __align__(16) int tile[256];
  int t = threadIdx.x;
  __pipeline_memcpy_async(tile + 4 * t, x + 4 * t, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int j = 0; j < 4; ++j) out[4 * t + j] = tile[4 * (63 - t) + j];
}
