// a warp's inclusive scan by shuffles
// fidelity: in=int32:small out=int32 ulp=0
// numpy: np.cumsum(x.reshape(8, 32), axis=1).ravel()
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = x[i], lane = threadIdx.x & 31;
  for (int distance = 1; distance < 32; distance *= 2) {
    int other = __shfl_up_sync(0xffffffffu, v, distance);
    if (lane >= distance) v += other;
  }
  out[i] = v;
}
