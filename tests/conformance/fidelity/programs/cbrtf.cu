// cbrtf on wide values
// fidelity: in=float32:wide out=float32 ulp=2
// numpy: np.cbrt(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cbrtf(x[i]);
}
