// shuffle up within 16 lanes
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: np.where(i % 16 < 2, x, x[np.maximum(i - 2, 0)])
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_up_sync(0xffffffffu, x[i], 2, 16);
}
