// __exp10f on small values
// fidelity: in=float32:small out=float32 ulp=22
// numpy: 10.0 ** d
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __exp10f(x[i]);
}
