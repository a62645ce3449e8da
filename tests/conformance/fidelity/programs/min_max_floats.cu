// min and max of floats and doubles
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: np.maximum(x, np.float32(0)) + np.minimum(x, np.float32(0.25))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = max(x[i], 0.0f) + (float)min((double)x[i], 0.25);
}
