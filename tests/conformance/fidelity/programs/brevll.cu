// reversed bits of 64
// fidelity: in=uint64:any out=uint64 ulp=0
// numpy: np.array([int(format(v, '064b')[::-1], 2) for v in x], dtype='u8')
__global__ void k(const unsigned long long* x, unsigned long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __brevll(x[i]);
}
