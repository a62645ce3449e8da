// __reduce_xor_sync over a warp
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: np.repeat(np.bitwise_xor.reduce(x.reshape(8, 32), 1), 32)
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __reduce_xor_sync(0xffffffffu, x[i]);
}
