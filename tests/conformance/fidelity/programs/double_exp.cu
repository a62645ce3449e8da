// exp on small values
// fidelity: in=float64:small out=float64 ulp=2
// numpy: np.exp(d)
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = exp(x[i]);
}
