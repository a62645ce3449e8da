// __fsqrt_ in all four rounding directions
// fidelity: in=float32:wide out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __fsqrt_rn(fabsf(x[i])); break;
    case 1: out[i] = __fsqrt_rz(fabsf(x[i])); break;
    case 2: out[i] = __fsqrt_ru(fabsf(x[i])); break;
    case 3: out[i] = __fsqrt_rd(fabsf(x[i])); break;
  }
}
