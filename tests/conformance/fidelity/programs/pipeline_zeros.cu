// asynchronous copies of 4, 8 and 16 bytes that end in zeros
// fidelity: in=int32:any out=int32 ulp=0 launch=1x32 outs=224
// numpy: np.concatenate([x[:32], np.where(np.arange(64) % 2 < 1, x[:64], 0), np.where(np.arange(128) % 4 < 3, x[:128], 0)])
#include <cuda_pipeline.h>

__global__ void k(const int* x, int* out, int n) {
  __shared__ __align__(16) int tile[224];
  int t = threadIdx.x;
  __pipeline_memcpy_async(tile + t, x + t, 4);
  __pipeline_memcpy_async(tile + 32 + 2 * t, x + 2 * t, 8, 4);
  __pipeline_memcpy_async(tile + 96 + 4 * t, x + 4 * t, 16, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int i = t; i < 224; i += 32) out[i] = tile[i];
}
