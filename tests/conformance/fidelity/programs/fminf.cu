// fminf: a NaN loses
// fidelity: in=float32:nonzero out=float32 ulp=0
// numpy: np.fmin(x, x[::-1])
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fminf(x[i], x[n - 1 - i]);
}
