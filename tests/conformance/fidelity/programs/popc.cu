// population count
// fidelity: in=uint32:any out=int32 ulp=0
// numpy: np.array([bin(v).count('1') * 101 for v in x])
__global__ void k(const unsigned* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __popc(x[i]) * 100 + __popcll((unsigned long long)x[i] << 20);
}
