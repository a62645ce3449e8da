// segments of eight lanes
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.repeat(x[3::8], 8)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_sync(0xffffffffu, x[i], 11, 8);
}
