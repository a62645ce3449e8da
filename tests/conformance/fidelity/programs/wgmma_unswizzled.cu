// products by a warpgroup of factors in blocks of eight rows of 16 bytes, without a swizzle
// fidelity: in=float32:halves out=float32 ulp=0 launch=1x128 n=1280 outs=1024 shared=2560
// numpy: d[:1024].reshape(64,16) @ d[1024:].reshape(16,16).T
#include <cuda_fp16.h>

__device__ void product(float* d, unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "l"(a), "l"(b));
}
__device__ unsigned long long described(const void* at, unsigned long long leading, unsigned long long stride, unsigned long long mode) {
  return (unsigned long long)__cvta_generic_to_shared(at) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}
__global__ void k(const float* x, float* out, int n) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __half* left = (__half*)tiles;
  __half* right = left + 64 * 16;
  int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) {
    int r = i / 16, c = i % 16;
    left[c / 8 * 512 + r / 8 * 64 + r % 8 * 8 + c % 8] = __float2half(x[i]);
  }
  for (int i = t; i < 16 * 16; i += 128) {
    int r = i / 16, c = i % 16;
    right[c / 8 * 128 + r / 8 * 64 + r % 8 * 8 + c % 8] = __float2half(x[64 * 16 + i]);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[8];
  for (int i = 0; i < 8; i++) d[i] = 0.0f;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int step = 0; step < 1; step++)
    product(d, described(left, 1024, 128, 0) + step * 0, described(right, 256, 128, 0) + step * 0);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; i++)
    out[(t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + t % 4 * 2 + i % 2] = d[i];
}
