// an array per thread, indexed at run time
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x[(i + (x & 15)) % n] + x[(i + 15 - (x & 15)) % n]
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int stack[16];
  for (int j = 0; j < 16; ++j) stack[j] = x[(i + j) % n];
  out[i] = stack[x[i] & 15] + stack[15 - (x[i] & 15)];
}
