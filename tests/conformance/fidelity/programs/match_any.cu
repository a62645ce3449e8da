// lanes that hold the same value
// fidelity: in=int32:any out=uint32 ulp=0
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __match_any_sync(0xffffffffu, x[i] & 3);
}
