// pair comparisons: values, masks, both lanes
// fidelity: in=float16:special out=uint32 ulp=0
#include <cuda_fp16.h>

__global__ void k(const __half* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2 a = __halves2half2(x[i], x[n - 1 - i]), b = __halves2half2(x[(i + 3) % n], x[i]);
  out[i] = (__hgt2_mask(a, b) & 0x10001u) + 2 * __hbeq2(a, a) + (unsigned)__low2float(__hle2(a, b)) * 4;
}
