// all lanes are active before any branch
// fidelity: in=int32:any out=uint32 ulp=0
// numpy: np.full(n, 0xffffffff)
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __activemask();
}
