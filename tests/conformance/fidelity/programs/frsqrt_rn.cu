// reciprocal square root, correctly rounded
// fidelity: in=float32:positive out=float32 ulp=0
// numpy: 1.0 / np.sqrt(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __frsqrt_rn(x[i]);
}
