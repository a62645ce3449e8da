// linear index of a three-dimensional grid of three-dimensional blocks
// fidelity: in=int32:any out=int32 launch=2,3,2x4,2,3 n=288 ulp=0
// numpy: x ^ (i % 24 * 1000 + i // 24)
__global__ void k(const int* x, int* out, int n) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  if (i < n) out[i] = x[i] ^ (thread * 1000 + block);
}
