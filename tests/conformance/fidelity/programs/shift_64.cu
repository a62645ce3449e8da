// 64-bit shifts
// fidelity: in=uint64:any out=uint64 ulp=0
// numpy: (x << (i & 63).astype('u8')) ^ (x >> (63 - (i & 63)).astype('u8'))
__global__ void k(const unsigned long long* x, unsigned long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (x[i] << (i & 63)) ^ (x[i] >> (63 - (i & 63)));
}
