// atomic and, or, xor
// fidelity: in=uint32:any out=uint32 outs=3 ulp=0
// numpy: np.array([np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x), 0])
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicOr(&out[0], x[i]);
  atomicXor(&out[1], x[i]);
  atomicAnd(&out[2], x[i]);
}
