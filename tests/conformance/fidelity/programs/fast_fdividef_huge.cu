// __fdividef gives 0 for divisors between 2^126 and 2^128
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: x * np.float32(0)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __fdividef(x[i] * 1e30f, 2e38f);
}
