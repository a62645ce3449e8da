// rnorm3df on normal values
// fidelity: in=float32:normal out=float32 ulp=3
// numpy: 1.0 / np.sqrt(d * d + d[::-1] ** 2 + 1)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = rnorm3df(x[i], x[n - 1 - i], 1.0f);
}
