// sin on angle values
// fidelity: in=float64:angle out=float64 ulp=3
// numpy: np.sin(d)
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sin(x[i]);
}
