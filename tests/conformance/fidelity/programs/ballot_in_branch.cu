// a vote among the lanes of one side of a branch
// fidelity: in=int32:any out=uint32 ulp=0
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x & 1) {
    out[i] = __ballot_sync(0xaaaaaaaau, x[i] > 0);
  } else {
    out[i] = __ballot_sync(0x55555555u, x[i] < 0);
  }
}
