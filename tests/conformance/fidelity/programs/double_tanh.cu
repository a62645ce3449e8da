// tanh on small values
// fidelity: in=float64:small out=float64 ulp=3
// numpy: np.tanh(d)
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tanh(x[i]);
}
