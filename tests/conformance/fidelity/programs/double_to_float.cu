// a double rounds to the nearest float
// fidelity: in=float64:wide out=float32 ulp=0
// numpy: d.astype('f4')
__global__ void k(const double* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)x[i];
}
