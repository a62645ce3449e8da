// loads and stores with cache hints
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = __ldcg(x + i) ^ __ldcs(x + i) ^ __ldca(x + i);
  if (i & 1) __stcs(out + i, v); else __stcg(out + i, v + __ldcv(x + i) * 0);
}
