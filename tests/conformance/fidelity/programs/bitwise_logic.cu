// and, or, xor, not
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: (x & np.uint32(0xff00ff00)) | ((~x >> np.uint32(8) & np.uint32(0x00ff00ff)) ^ i.astype('u4'))
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (x[i] & 0xff00ff00u) | (~x[i] >> 8 & 0x00ff00ffu) ^ i;
}
