// products of halves by a warpgroup, rounded as sums are
// fidelity: in=float32:normal out=float32 ulp=2 abs=1e-4 launch=1x128 n=4608 outs=512 shared=9216
// numpy: (lambda v: v[:4096].reshape(64,64) @ v[4096:].reshape(8,64).T)(x.astype('f2').astype('f8'))
#include <cuda_fp16.h>

__device__ void product(float* d, unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b));
}
__device__ unsigned long long described(const void* at, unsigned long long leading, unsigned long long stride, unsigned long long mode) {
  return (unsigned long long)__cvta_generic_to_shared(at) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}
__global__ void k(const float* x, float* out, int n) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __half* left = (__half*)tiles;
  __half* right = left + 64 * 64;
  int t = threadIdx.x;
  for (int i = t; i < 64 * 64; i += 128) {
    int r = i / 64, c = i % 64;
    left[r * 64 + (c / 8 ^ r % 8) * 8 + c % 8] = __float2half(x[i]);
  }
  for (int i = t; i < 8 * 64; i += 128) {
    int r = i / 64, c = i % 64;
    right[r * 64 + (c / 8 ^ r % 8) * 8 + c % 8] = __float2half(x[64 * 64 + i]);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[4];
  for (int i = 0; i < 4; i++) d[i] = 0.0f;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int step = 0; step < 4; step++)
    product(d, described(left, 0, 1024, 1) + step * 2, described(right, 0, 1024, 1) + step * 2);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++)
    out[(t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * 8 + i / 4 * 8 + t % 4 * 2 + i % 2] = d[i];
}
