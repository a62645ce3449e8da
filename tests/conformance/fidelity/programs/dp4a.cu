// dot product of four bytes, signed
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x.view('i1').reshape(-1, 4).astype('i4') * x[::-1].copy().view('i1').reshape(-1, 4)).sum(1) + i
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __dp4a(x[i], x[n - 1 - i], i);
}
