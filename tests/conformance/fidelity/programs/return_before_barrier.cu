// whole warps that leave before a barrier of the others
// fidelity: in=int32:small out=int32 launch=1x128 n=128 ulp=0
// numpy: np.concatenate([(x[:64] + x[64:])[::-1], np.zeros(64, 'i4')])
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int tile[128];
  tile[threadIdx.x] = x[i];
  __syncthreads();
  if (threadIdx.x >= 64) return;
  tile[threadIdx.x] += tile[threadIdx.x + 64];
  __syncthreads();
  out[i] = tile[63 - threadIdx.x];
}
