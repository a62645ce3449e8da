// __launch_bounds__ with both arguments
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x * 9
__global__ void __launch_bounds__(256, 2) k(const int* __restrict__ x, int* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 9;
}
