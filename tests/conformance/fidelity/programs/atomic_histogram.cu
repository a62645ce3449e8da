// a histogram in shared memory, merged with global atomics
// fidelity: in=int32:any out=int32 outs=16 launch=4x64 ulp=0
// numpy: np.bincount(x & 15, minlength=16)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[x[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
