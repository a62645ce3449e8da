// butterfly exchange of 64-bit values
// fidelity: in=int64:any out=int64 ulp=0
// numpy: x[i ^ 9]
__global__ void k(const long long* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_xor_sync(0xffffffffu, x[i], 9);
}
