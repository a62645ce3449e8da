// shared memory exchanged within a warp
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x[i ^ 31]
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int slot[256];
  slot[threadIdx.x] = x[i];
  __syncwarp();
  out[i] = slot[threadIdx.x ^ 31];
}
