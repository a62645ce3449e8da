// a butterfly may read an earlier segment, not a later one
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.where((i % 32 ^ 12) <= (i % 32 | 7), x[i ^ 12], x)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_xor_sync(0xffffffffu, x[i], 12, 8);
}
