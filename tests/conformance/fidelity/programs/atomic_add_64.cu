// 64-bit sum
// fidelity: in=uint64:any out=uint64 outs=1 ulp=0
// numpy: x.sum(dtype='u8')
__global__ void k(const unsigned long long* x, unsigned long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out, x[i]);
}
