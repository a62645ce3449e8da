// atomic decrement wraps to its bound
// fidelity: in=int32:any out=uint32 outs=1 ulp=0
// numpy: (100 - 256 % 100) % 100
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicDec(out, 99u);
}
