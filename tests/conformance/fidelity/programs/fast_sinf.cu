// __sinf: within 2^-21 on [-pi, pi]
// fidelity: in=float32:unit out=float32 ulp=0 abs=6e-7
// numpy: np.sin(np.float64(x * np.float32(3)))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __sinf(x[i] * 3.0f);
}
