// dynamic shared memory, split into two arrays
// fidelity: in=int32:any out=int32 launch=2x128 shared=1024 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  extern __shared__ int pool[];
  int* low = pool;
  int* high = pool + blockDim.x;
  low[threadIdx.x] = x[i] & 0xffff;
  high[threadIdx.x] = x[i] >> 16;
  __syncthreads();
  int other = threadIdx.x ^ 1;
  out[i] = low[other] + high[other] * 3;
}
