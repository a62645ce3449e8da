// fabsf clears the sign of zero and infinity
// fidelity: in=float32:special out=float32 ulp=0
// numpy: np.abs(x)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fabsf(x[i]);
}
