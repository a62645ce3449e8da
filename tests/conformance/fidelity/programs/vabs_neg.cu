// packed absolute value and negation
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  if (i & 1) out[i] = __vabs2(a) ^ __vabsss4(a);
  else out[i] = __vneg4(b) ^ __vnegss2(b);
}
