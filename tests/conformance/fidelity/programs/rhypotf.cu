// rhypotf on normal values
// fidelity: in=float32:normal out=float32 ulp=3
// numpy: 1.0 / np.hypot(d, d[::-1])
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = rhypotf(x[i], x[n - 1 - i]);
}
