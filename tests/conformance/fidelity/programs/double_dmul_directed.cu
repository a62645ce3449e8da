// __dmul_ in all four rounding directions
// fidelity: in=float64:wide out=float64 ulp=0
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __dmul_rn(x[i], x[n - 1 - i]); break;
    case 1: out[i] = __dmul_rz(x[i], x[n - 1 - i]); break;
    case 2: out[i] = __dmul_ru(x[i], x[n - 1 - i]); break;
    case 3: out[i] = __dmul_rd(x[i], x[n - 1 - i]); break;
  }
}
