// tanf on angle values
// fidelity: in=float32:angle out=float32 ulp=5
// numpy: np.tan(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tanf(x[i]);
}
