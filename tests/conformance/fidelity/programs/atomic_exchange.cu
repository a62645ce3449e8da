// atomic exchange on an element of one's own
// fidelity: in=int32:any out=int32 outs=256 ulp=0
// numpy: x
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i] + atomicExch(&out[i], 5);
}
