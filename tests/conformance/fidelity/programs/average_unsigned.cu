// unsigned averages without overflow
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: ((x.astype('i8') + x[::-1] >> 1) ^ (x.astype('i8') + i + 1 >> 1))
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __uhadd(x[i], x[n - 1 - i]) ^ __urhadd(x[i], i);
}
