// volatile shared memory with a warp barrier
// fidelity: in=int32:any out=int32 launch=8x32 ulp=0
// numpy: x.reshape(8, 32)[:, (np.arange(32) + 5) & 31].ravel()
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  volatile __shared__ int slot[32];
  slot[threadIdx.x] = x[i];
  __syncwarp();
  out[i] = slot[(threadIdx.x + 5) & 31];
}
