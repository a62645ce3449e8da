// clocks never run backwards
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x & 15
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  long long before = clock64();
  int v = x[i] & 15;
  long long after = clock64();
  out[i] = after >= before ? v : -1;
}
