// __log10f: within 2^-24 near 1, 3 ulp elsewhere
// fidelity: in=float32:positive out=float32 ulp=4 abs=2e-7
// numpy: np.log10(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __log10f(x[i]);
}
