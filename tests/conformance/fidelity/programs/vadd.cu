// packed sums of 2 and 4 lanes
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  out[i] = __vadd2(a, b) ^ __vadd4(a, b);
}
