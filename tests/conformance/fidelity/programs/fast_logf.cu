// __logf: within 2^-21.41 near 1, 3 ulp elsewhere
// fidelity: in=float32:positive out=float32 ulp=4 abs=4e-7
// numpy: np.log(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __logf(x[i]);
}
