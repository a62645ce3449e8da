// pow of doubles
// fidelity: in=float64:unit out=float64 ulp=3
// numpy: d ** 2.3
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = pow(x[i], 2.3);
}
