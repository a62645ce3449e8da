// positive difference
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: np.where(x > x[::-1], x - x[::-1], np.float32(0))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fdimf(x[i], x[n - 1 - i]);
}
