// shuffle up; the lowest lanes keep theirs
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: np.where(i % 32 < 3, x, x[np.maximum(i - 3, 0)])
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_up_sync(0xffffffffu, x[i], 3);
}
