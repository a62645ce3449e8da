// double sum of integers
// fidelity: in=int32:small out=float64 outs=1 ulp=0
// numpy: x.sum() * 0.5
__global__ void k(const int* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out, (double)x[i] * 0.5);
}
