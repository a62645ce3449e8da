// shuffle down; the highest lanes keep theirs
// fidelity: in=float64:normal out=float64 ulp=0
// numpy: np.where(i % 32 > 24, x, x[np.minimum(i + 7, n - 1)])
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_down_sync(0xffffffffu, x[i], 7);
}
