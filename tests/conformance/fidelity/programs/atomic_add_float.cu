// float sum of integers, exact in any order
// fidelity: in=int32:small out=float32 outs=1 ulp=0
// numpy: x.sum()
__global__ void k(const int* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out, (float)x[i]);
}
