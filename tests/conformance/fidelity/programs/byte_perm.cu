// byte permutation of two words
// fidelity: in=uint32:any out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __byte_perm(x[i], x[n - 1 - i], x[(i + 7) % n] & 0x7777);
}
