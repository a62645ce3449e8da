// double to int saturates
// fidelity: in=float64:special out=int32 ulp=0
__global__ void k(const double* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __double2int_rn(x[i]); break;
    case 1: out[i] = __double2int_rz(x[i]); break;
    case 2: out[i] = __double2int_ru(x[i]); break;
    case 3: out[i] = __double2int_rd(x[i]); break;
  }
}
