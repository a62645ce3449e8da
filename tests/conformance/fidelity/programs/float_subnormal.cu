// subnormal numbers are kept
// fidelity: in=float32:tiny out=float32 ulp=0
// numpy: (d * 0.5).astype('f4')
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 0.5f + 0.0f;
}
