// __powf: 2 to the power of y * __log2f(x)
// fidelity: in=float32:unit out=float32 ulp=32
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __powf(x[i] + 0.5f, 2.5f);
}
