// funnel shift left
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __funnelshift_l(x[i], x[n - 1 - i], i) ^ __funnelshift_lc(x[i], x[n - 1 - i], i);
}
