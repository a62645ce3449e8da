// __fmul_rn and __fadd_rn are not fused
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: (x * x[::-1]) + np.float32(0.7)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __fadd_rn(__fmul_rn(x[i], x[n - 1 - i]), 0.7f);
}
