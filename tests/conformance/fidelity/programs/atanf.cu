// atanf on wide values
// fidelity: in=float32:wide out=float32 ulp=3
// numpy: np.arctan(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = atanf(x[i]);
}
