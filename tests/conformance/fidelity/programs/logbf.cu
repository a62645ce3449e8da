// exponent as a float
// fidelity: in=float32:wide out=float32 ulp=0
// numpy: (np.frexp(x)[1] - 1).astype('f4')
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = logbf(x[i]);
}
