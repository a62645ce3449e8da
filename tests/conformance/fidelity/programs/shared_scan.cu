// an inclusive scan in shared memory with two barriers a step
// fidelity: in=int32:small out=int32 ulp=0
// numpy: np.cumsum(x)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int part[256];
  part[threadIdx.x] = x[i];
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    int add = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
    __syncthreads();
    part[threadIdx.x] += add;
  }
  out[i] = part[threadIdx.x];
}
