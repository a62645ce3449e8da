// leading zeros of 64 bits
// fidelity: in=int64:small out=int32 ulp=0
__global__ void k(const long long* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __clzll(x[i]) * 100 + __clzll(x[i] << 33);
}
