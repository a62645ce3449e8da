// a group of products is under way while the next tile is copied and begun
// fidelity: in=float16:small out=float32 ulp=2 abs=1e-3 launch=1x128 n=18432 outs=512 shared=27648
// numpy: sum(d[4608 * s :][:4096].reshape(64,64) @ d[4608 * s + 4096 :][:512].reshape(8,64).T for s in range(4))
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

__device__ unsigned long long described(const void* at) {
  return (unsigned long long)__cvta_generic_to_shared(at) >> 4 | 64ull << 32 | 1ull << 62;
}
__device__ void fetched(unsigned char* to, const __half* from) {
  for (int i = threadIdx.x; i < 576; i += 128) __pipeline_memcpy_async(to + i / 8 * 128 + (i % 8 ^ i / 8 % 8) * 16, from + i * 8, 16);
}
__global__ void k(const __half* x, float* out, int n) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  int t = threadIdx.x;
  float low = 0.0f, low_next = 0.0f, high = 0.0f, high_next = 0.0f;
  fetched(tiles, x);
  __pipeline_commit();
#pragma unroll 1
  for (int s = 0; s < 4; s++) {
    __pipeline_wait_prior(0);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    unsigned long long a = described(tiles + s % 3 * 9216), b = described(tiles + s % 3 * 9216 + 8192);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < 8; step += 2)
      asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                   : "+f"(low), "+f"(low_next), "+f"(high), "+f"(high_next)
                   : "l"(a + step), "l"(b + step));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (s < 3) fetched(tiles + (s + 1) % 3 * 9216, x + 4608 * (s + 1));
    __pipeline_commit();
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(1) : "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  float d[4] = {low, low_next, high, high_next};
  for (int i = 0; i < 4; i++) out[(t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i];
}
