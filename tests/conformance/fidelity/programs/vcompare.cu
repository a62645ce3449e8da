// packed comparisons to masks
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  if (i & 1) out[i] = __vcmpgts2(a, b) ^ __vcmpgeu4(a, b);
  else out[i] = __vcmpeq4(a & 0x3, b & 0x3) ^ __vcmpltu2(a, b);
}
