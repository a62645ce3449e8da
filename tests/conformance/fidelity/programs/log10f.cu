// log10f on positive values
// fidelity: in=float32:positive out=float32 ulp=3
// numpy: np.log10(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = log10f(x[i]);
}
