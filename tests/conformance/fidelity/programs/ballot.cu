// votes of a warp
// fidelity: in=int32:any out=uint32 ulp=0
// numpy: np.repeat(np.packbits((x > 0).reshape(8, 32), axis=1, bitorder='little').view('u4').ravel(), 32)
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __ballot_sync(0xffffffffu, x[i] > 0);
}
