// log on positive values
// fidelity: in=float64:positive out=float64 ulp=2
// numpy: np.log(d)
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = log(x[i]);
}
