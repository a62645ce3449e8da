// packed differences, saturating
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  if (i & 1) out[i] = __vsubss2(a, b) ^ __vsubss4(a, b);
  else out[i] = __vsubus2(a, b) ^ __vsubus4(a, b);
}
