// the last block to finish does the final work
// fidelity: in=int32:small out=int32 outs=3 launch=16x32 n=16 ulp=0
// numpy: np.array([x[:16].sum() * 2, x[:16].sum(), 16])
__global__ void k(const int* x, int* out, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    atomicAdd(&out[1], x[blockIdx.x]);
    __threadfence();
    last = atomicAdd(&out[2], 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) out[0] = out[1] * 2;
}
