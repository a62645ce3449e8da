// high word of an unsigned product
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: (x.astype('u8') * x[::-1] >> np.uint64(32))
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __umulhi(x[i], x[n - 1 - i]);
}
