// cosf on angle values
// fidelity: in=float32:angle out=float32 ulp=3
// numpy: np.cos(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cosf(x[i]);
}
