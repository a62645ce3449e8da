// all groups but the last of two, then all
// fidelity: in=int32:any out=int32 ulp=0 launch=1x64 n=128 outs=128
// numpy: np.concatenate([x[:64][::-1], x[64:] ^ x[:64]])
#include <cuda_pipeline.h>

__global__ void k(const int* x, int* out, int n) {
  __shared__ int first[64], second[64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(first + t, x + t, 4);
  __pipeline_commit();
  __pipeline_memcpy_async(second + t, x + 64 + t, 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  out[t] = first[63 - t];
  __pipeline_wait_prior(0);
  out[64 + t] = second[t] ^ first[t];
}
