// whether all lanes hold the same value
// fidelity: in=int32:any out=uint32 ulp=0
// numpy: np.where(i < 64, 999, 1)
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int same;
  unsigned mask = __match_all_sync(0xffffffffu, i < 64 ? 7 : x[i], &same);
  out[i] = mask + (same ? 1000u : 1u);
}
