// cyl_bessel_i0f on small values
// fidelity: in=float32:small out=float32 ulp=7
// numpy: np.i0(d)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cyl_bessel_i0f(x[i]);
}
