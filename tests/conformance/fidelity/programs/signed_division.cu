// division and remainder truncate towards zero
// fidelity: in=int32:any out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int d = (i % 13) - 6;
  if (d == 0) d = 9;
  out[i] = x[i] / d * 10 + x[i] % d;
}
