// isnan, isinf, isfinite, signbit
// fidelity: in=float32:nonzero out=int32 ulp=0
// numpy: np.isnan(x) * 1 + np.isinf(x) * 2 + np.isfinite(x) * 4 + (x < 0) * 8
__global__ void k(const float* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  bool negative = isnan(v) ? false : signbit(v);
  out[i] = (isnan(v) ? 1 : 0) + (isinf(v) ? 2 : 0) + (isfinite(v) ? 4 : 0) + (negative ? 8 : 0);
}
