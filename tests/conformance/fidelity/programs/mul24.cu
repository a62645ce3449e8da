// 24-bit products
// fidelity: in=int32:any out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __mul24(x[i], x[n - 1 - i]) ^ (int)__umul24(x[i], x[n - 1 - i]);
}
