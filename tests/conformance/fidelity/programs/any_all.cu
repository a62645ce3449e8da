// any and all over a warp
// fidelity: in=int32:any out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = (__any_sync(0xffffffffu, x[i] > 2000000000) != 0) + 2 * (__all_sync(0xffffffffu, x[i] > -2140000000) != 0);
}
