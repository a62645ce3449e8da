// lgammaf right of its roots
// fidelity: in=float32:positive out=float32 ulp=7
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = lgammaf(x[i] + 3.0f);
}
