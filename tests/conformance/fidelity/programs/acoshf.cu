// acoshf on positive values
// fidelity: in=float32:positive out=float32 ulp=5
// numpy: np.arccosh(np.float64(np.float32(1) + x))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = acoshf(1.0f + x[i]);
}
