// atomic minimum and maximum
// fidelity: in=int32:any out=int32 outs=2 ulp=0
// numpy: np.array([min(x.min(), 0), max(x.max(), 0)])
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(&out[0], x[i]);
  atomicMax(&out[1], x[i]);
}
