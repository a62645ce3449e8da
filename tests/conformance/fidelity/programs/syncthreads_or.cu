// __syncthreads_or over a block
// fidelity: in=int32:any out=int32 launch=2x128 ulp=0
// numpy: np.repeat((x.reshape(2, 128) > 0).any(1), 128)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __syncthreads_or(x[i] > 0) != 0;
}
