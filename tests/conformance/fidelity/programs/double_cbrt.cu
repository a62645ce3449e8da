// cbrt on wide values
// fidelity: in=float64:wide out=float64 ulp=2
// numpy: np.cbrt(d)
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cbrt(x[i]);
}
