// log2f on positive values
// fidelity: in=float32:positive out=float32 ulp=2
// numpy: np.log2(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = log2f(x[i]);
}
