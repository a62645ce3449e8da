// double square root
// fidelity: in=float64:positive out=float64 ulp=0
// numpy: np.sqrt(d)
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sqrt(x[i]);
}
