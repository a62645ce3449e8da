// 64-bit product of two ints
// fidelity: in=int32:any out=int64 ulp=0
// numpy: x.astype('i8') * x[::-1]
__global__ void k(const int* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (long long)x[i] * x[n - 1 - i];
}
