// the n-th set bit
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __fns(x[i], i & 31, (i >> 5) - 4);
}
