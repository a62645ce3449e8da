// float quotient is correctly rounded
// fidelity: in=float32:special out=float32 ulp=0
// numpy: x / x[::-1]
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / x[n - 1 - i];
}
