// a shuffle in a warp of 13 lanes
// fidelity: in=int32:any out=int32 ulp=0 launch=1x13 n=13
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __shfl_xor_sync(0x1fffu, x[i], threadIdx.x < 12 ? 1 : 0);
}
