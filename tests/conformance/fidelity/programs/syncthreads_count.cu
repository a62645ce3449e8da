// __syncthreads_count over a block
// fidelity: in=int32:any out=int32 launch=2x128 ulp=0
// numpy: np.repeat((x.reshape(2, 128) > 0).sum(1), 128)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __syncthreads_count(x[i] > 0);
}
