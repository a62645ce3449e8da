// a * b + c is fused into one rounding
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: (d * d[::-1] + np.float64(np.float32(0.7))).astype('f4')
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * x[n - 1 - i] + 0.7f;
}
