// shuffle down within 4 lanes
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.where(i % 4 == 3, x, x[np.minimum(i + 1, n - 1)])
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_down_sync(0xffffffffu, x[i], 1, 4);
}
