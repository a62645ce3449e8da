// scalbnf down into the subnormals
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: np.ldexp(x, -(i % 150))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scalbnf(x[i], -(i % 150));
}
