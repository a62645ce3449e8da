// three stages of asynchronous copies, one of which is read at a time
// fidelity: in=float32:small out=float32 ulp=0 launch=1x32
// numpy: (lambda v: np.cumsum(v.reshape(8, 32)[:, ::-1], axis=0, dtype='f4'))(x)
#include <cuda_pipeline.h>

__global__ void k(const float* x, float* out, int n) {
  __shared__ float stage[3][32];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int s = 0; s < 2; ++s) {
    __pipeline_memcpy_async(&stage[s][t], x + 32 * s + t, 4);
    __pipeline_commit();
  }
  for (int s = 0; s < 8; ++s) {
    __pipeline_wait_prior(1);
    __syncthreads();
    if (s + 2 < 8) __pipeline_memcpy_async(&stage[(s + 2) % 3][t], x + 32 * (s + 2) + t, 4);
    __pipeline_commit();
    sum += stage[s % 3][31 - t];
    out[32 * s + t] = sum;
  }
}
