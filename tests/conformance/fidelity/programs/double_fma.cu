// fused multiply-add of doubles
// fidelity: in=float64:normal out=float64 ulp=0
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fma(x[i], x[n - 1 - i], 1.0 / 3.0);
}
