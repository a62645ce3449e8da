// what does not fit is cut to the ends by a cast to 32 bits and more; a NaN is 0
// fidelity: in=float32:special out=int32 ulp=0 outs=1024
__global__ void k(const float* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i] * (i % 3 == 0 ? 1 : i % 3 == 1 ? 1000 : 3000000000u);
  int* o = out + 4 * i;
  o[0] = (int)v;
  o[1] = (int)(unsigned)v;
  o[2] = v == v ? (int)((long long)v >> 32) : 0;
  o[3] = v == v ? (int)((unsigned long long)v >> 32) : 0;
}
