// __fma_ in all four rounding directions
// fidelity: in=float64:wide out=float64 ulp=0
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __fma_rn(x[i], x[n - 1 - i], 0.1); break;
    case 1: out[i] = __fma_rz(x[i], x[n - 1 - i], 0.1); break;
    case 2: out[i] = __fma_ru(x[i], x[n - 1 - i], 0.1); break;
    case 3: out[i] = __fma_rd(x[i], x[n - 1 - i], 0.1); break;
  }
}
