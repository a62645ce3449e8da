// unsigned sums, one a warp
// fidelity: in=uint32:any out=uint32 outs=8 ulp=0
// numpy: x.reshape(8, 32).sum(1, dtype='u4')
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&out[threadIdx.x / 32], x[i]);
}
