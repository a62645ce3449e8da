// double to unsigned saturates
// fidelity: in=float64:special out=uint32 ulp=0
__global__ void k(const double* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __double2uint_rn(x[i]); break;
    case 1: out[i] = __double2uint_rz(x[i]); break;
    case 2: out[i] = __double2uint_ru(x[i]); break;
    case 3: out[i] = __double2uint_rd(x[i]); break;
  }
}
