// reciprocal, rounded to nearest and up
// fidelity: in=float32:wide out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i & 1 ? __frcp_rn(x[i]) : __frcp_ru(x[i]);
}
