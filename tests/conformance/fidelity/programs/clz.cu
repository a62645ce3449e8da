// leading zeros, 32 for 0
// fidelity: in=int32:small out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __clz(x[i]) * 100 + __clz(x[i] - 40);
}
