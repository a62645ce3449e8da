// high word of 64-bit products
// fidelity: in=int64:any out=int64 ulp=0
__global__ void k(const long long* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __mul64hi(x[i], x[n - 1 - i]) ^ (long long)__umul64hi(x[i], x[n - 1 - i]);
}
