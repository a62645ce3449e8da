// the next float up
// fidelity: in=float32:wide out=float32 ulp=0
// numpy: np.nextafter(x, np.float32(1e30))
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = nextafterf(x[i], 1e30f);
}
