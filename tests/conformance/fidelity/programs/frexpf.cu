// frexpf: mantissa and exponent
// fidelity: in=float32:wide out=float32 ulp=0
// numpy: np.frexp(x)[0] + np.frexp(x)[1].astype('f4')
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int exponent;
  float mantissa = frexpf(x[i], &exponent);
  out[i] = mantissa + (float)exponent;
}
