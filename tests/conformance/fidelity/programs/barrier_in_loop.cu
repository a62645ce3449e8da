// barriers in a loop whose trip count is the block's own
// fidelity: in=int32:small out=int32 launch=4x64 ulp=0
// numpy: np.concatenate([np.roll(b, -1 - r) for r, b in enumerate(x.reshape(4, 64))])
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int part[64];
  part[threadIdx.x] = x[i];
  for (int step = 0; step <= blockIdx.x; ++step) {
    __syncthreads();
    int next = part[(threadIdx.x + 1) % 64];
    __syncthreads();
    part[threadIdx.x] = next;
  }
  out[i] = part[threadIdx.x];
}
