// system scope
// fidelity: in=int32:any out=int32 outs=1 ulp=0
// numpy: (x & 0xffff).max()
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMax_system(out, x[i] & 0xffff);
}
