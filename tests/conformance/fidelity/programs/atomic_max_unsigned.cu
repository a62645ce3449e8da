// atomic maximum compares as unsigned
// fidelity: in=uint32:any out=uint32 outs=1 ulp=0
// numpy: x.max()
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMax(out, x[i]);
}
