// __tanf: the quotient of __sinf and __cosf
// fidelity: in=float32:unit out=float32 ulp=0 abs=3e-6
// numpy: np.tan(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __tanf(x[i]);
}
