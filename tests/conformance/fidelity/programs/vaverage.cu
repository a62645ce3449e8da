// packed averages
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  if (i & 1) out[i] = __vavgs2(a, b) ^ __vavgs4(a, b);
  else out[i] = __vavgu2(a, b) ^ __vavgu4(a, b);
}
