// sincosf: both at once
// fidelity: in=float32:angle out=float32 ulp=3
// numpy: np.where(i & 1, np.sin(d), np.cos(d))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s, c;
  sincosf(x[i], &s, &c);
  out[i] = i & 1 ? s : c;
}
