// double sum, product and quotient
// fidelity: in=float64:wide out=float64 ulp=0
// numpy: d * 3.0 + 1.0 / d
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __dadd_rn(x[i] * 3.0, 1.0 / x[i]);
}
