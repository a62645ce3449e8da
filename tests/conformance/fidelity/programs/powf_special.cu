// powf of infinities, NaN, zeros and negative bases
// fidelity: in=float32:special out=float32 ulp=5
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = powf(x[i], i % 4 - 1.5f);
}
