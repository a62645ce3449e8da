// block scope, in shared memory
// fidelity: in=int32:any out=int32 outs=2 launch=2x128 ulp=0
// numpy: (x.reshape(2, 128) & 7).sum(1)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd_block(&count, x[i] & 7);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count;
}
