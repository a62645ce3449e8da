// atomic subtraction
// fidelity: in=int32:any out=int32 outs=1 ulp=0
// numpy: -x.sum(dtype='i4')
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicSub(out, x[i]);
}
