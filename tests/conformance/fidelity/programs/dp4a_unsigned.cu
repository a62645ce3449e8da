// dot product of four bytes, unsigned
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: (x.view('u1').reshape(-1, 4).astype('i4') * x[::-1].copy().view('u1').reshape(-1, 4)).sum(1) + i
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __dp4a(x[i], x[n - 1 - i], (unsigned)i);
}
