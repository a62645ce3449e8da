// packed signed minimum and maximum
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  out[i] = __vmaxs2(a, b) + __vmins4(a, b);
}
