// __fmul_ in all four rounding directions
// fidelity: in=float32:wide out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __fmul_rn(x[i], x[n - 1 - i]); break;
    case 1: out[i] = __fmul_rz(x[i], x[n - 1 - i]); break;
    case 2: out[i] = __fmul_ru(x[i], x[n - 1 - i]); break;
    case 3: out[i] = __fmul_rd(x[i], x[n - 1 - i]); break;
  }
}
