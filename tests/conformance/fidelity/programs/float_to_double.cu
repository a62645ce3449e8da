// a float widens exactly
// fidelity: in=float32:special out=float64 ulp=0
// numpy: d
__global__ void k(const float* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (double)x[i];
}
