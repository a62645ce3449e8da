// unsigned division and remainder
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: x // (i + 1).astype('u4') + x % (i + 3).astype('u4')
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (i + 1u) + x[i] % (i + 3u);
}
