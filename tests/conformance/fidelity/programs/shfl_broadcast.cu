// lane 5 to all lanes
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.repeat(x[5::32], 32)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_sync(0xffffffffu, x[i], 5);
}
