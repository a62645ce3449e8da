// rintf
// fidelity: in=float32:special out=float32 ulp=0
// numpy: np.rint(x)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = rintf(x[i]);
}
