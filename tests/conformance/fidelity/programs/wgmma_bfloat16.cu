// products of bfloat16 by a warpgroup, sixteen columns
// fidelity: in=float32:halves out=float32 ulp=0 launch=1x128 n=5120 outs=1024 shared=10240
// numpy: d[:4096].reshape(64,64) @ d[4096:].reshape(16,64).T
#include <cuda_bf16.h>

__device__ void product(float* d, unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "l"(a), "l"(b));
}
__device__ unsigned long long described(const void* at, unsigned long long leading, unsigned long long stride, unsigned long long mode) {
  return (unsigned long long)__cvta_generic_to_shared(at) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}
__global__ void k(const float* x, float* out, int n) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __nv_bfloat16* left = (__nv_bfloat16*)tiles;
  __nv_bfloat16* right = left + 64 * 64;
  int t = threadIdx.x;
  for (int i = t; i < 64 * 64; i += 128) {
    int r = i / 64, c = i % 64;
    left[r * 64 + (c / 8 ^ r % 8) * 8 + c % 8] = __float2bfloat16(x[i]);
  }
  for (int i = t; i < 16 * 64; i += 128) {
    int r = i / 64, c = i % 64;
    right[r * 64 + (c / 8 ^ r % 8) * 8 + c % 8] = __float2bfloat16(x[64 * 64 + i]);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[8];
  for (int i = 0; i < 8; i++) d[i] = 0.0f;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int step = 0; step < 4; step++)
    product(d, described(left, 0, 1024, 1) + step * 2, described(right, 0, 1024, 1) + step * 2);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; i++)
    out[(t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + t % 4 * 2 + i % 2] = d[i];
}
