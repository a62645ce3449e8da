// dot products of 16-bit with 8-bit parts
// fidelity: in=int32:any out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __dp2a_lo(x[i], x[n - 1 - i], i) ^ __dp2a_hi(x[i], x[n - 1 - i], i);
}
