// exponent as an int
// fidelity: in=float32:wide out=int32 ulp=0
// numpy: np.frexp(x)[1] - 1
__global__ void k(const float* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = ilogbf(x[i]);
}
