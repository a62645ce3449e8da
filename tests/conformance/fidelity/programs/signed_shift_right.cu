// right shift of negative numbers keeps the sign
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x >> (i & 31)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] >> (i & 31);
}
