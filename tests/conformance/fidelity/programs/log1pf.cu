// log1pf on unit values
// fidelity: in=float32:unit out=float32 ulp=2
// numpy: np.log1p(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = log1pf(x[i]);
}
