// sinhf on small values
// fidelity: in=float32:small out=float32 ulp=4
// numpy: np.sinh(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sinhf(x[i]);
}
