// high word of a signed product
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x.astype('i8') * x[::-1] >> 32)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __mulhi(x[i], x[n - 1 - i]);
}
