// ldexpf scales by a power of two
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: np.ldexp(x, i % 64 - 32)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = ldexpf(x[i], i % 64 - 32);
}
