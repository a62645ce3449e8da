// averages without overflow
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x.astype('i8') + x[::-1] >> 1) ^ (x.astype('i8') + i + 1 >> 1)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __hadd(x[i], x[n - 1 - i]) ^ __rhadd(x[i], i);
}
