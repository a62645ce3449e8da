// __fdividef: 2 ulp for divisors up to 2^126
// fidelity: in=float32:normal out=float32 ulp=3
// numpy: d / d[::-1]
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __fdividef(x[i], x[n - 1 - i]);
}
