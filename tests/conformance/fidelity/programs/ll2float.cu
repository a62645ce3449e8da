// long long to float in all directions
// fidelity: in=int64:any out=float32 ulp=0
__global__ void k(const long long* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __ll2float_rn(x[i]); break;
    case 1: out[i] = __ll2float_rz(x[i]); break;
    case 2: out[i] = __ll2float_ru(x[i]); break;
    case 3: out[i] = __ll2float_rd(x[i]); break;
  }
}
