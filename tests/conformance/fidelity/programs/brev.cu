// reversed bits
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: np.array([int(format(v, '032b')[::-1], 2) for v in x])
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __brev(x[i]);
}
