// modff: the two parts of a number
// fidelity: in=float32:wide out=float32 ulp=0
// numpy: np.where(i & 1, np.modf(x)[1], np.modf(x)[0])
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float whole, part = modff(x[i], &whole);
  out[i] = i & 1 ? whole : part;
}
