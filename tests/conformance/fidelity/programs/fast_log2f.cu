// __log2f: within 2^-22 near 1, 2 ulp elsewhere
// fidelity: in=float32:positive out=float32 ulp=3 abs=3e-7
// numpy: np.log2(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __log2f(x[i]);
}
