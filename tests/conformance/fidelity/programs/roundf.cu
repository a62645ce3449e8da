// roundf: halves away from zero
// fidelity: in=float32:halves out=float32 ulp=0
// numpy: np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = roundf(x[i]);
}
