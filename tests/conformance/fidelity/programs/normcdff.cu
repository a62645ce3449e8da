// normcdff on small values
// fidelity: in=float32:small out=float32 ulp=6
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = normcdff(x[i]);
}
