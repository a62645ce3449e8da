// fmodf is exact
// fidelity: in=float32:small out=float32 ulp=0
// numpy: np.fmod(x * np.float32(100), np.float32(0.7))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmodf(x[i] * 100.0f, 0.7f);
}
