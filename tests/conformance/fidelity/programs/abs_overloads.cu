// abs of int and of float
// fidelity: in=float32:small out=float32 ulp=0
// numpy: np.abs(x.astype('i4')).astype('f4') + np.abs(x)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)abs((int)x[i]) + fabsf(x[i]);
}
