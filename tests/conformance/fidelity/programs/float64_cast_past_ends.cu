// what does not fit is cut to the ends by a cast to 32 bits and more; a NaN of a double is left out
// fidelity: in=float64:special out=int32 ulp=0 outs=1024
__global__ void k(const double* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i] * (i % 3 == 0 ? 1 : i % 3 == 1 ? 1000 : 3000000000u);
  int* o = out + 4 * i;
  o[0] = v == v ? (int)v : 0;
  o[1] = v == v ? (int)(unsigned)v : 0;
  o[2] = v == v ? (int)((long long)v >> 32) : 0;
  o[3] = v == v ? (int)((unsigned long long)v >> 32) : 0;
}
