// square root is correctly rounded
// fidelity: in=float32:positive out=float32 ulp=0
// numpy: np.sqrt(x)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sqrtf(x[i]);
}
