// comparisons with NaN are false
// fidelity: in=float32:special out=int32 ulp=0
// numpy: (x < 1) + 2 * (x >= 1) + 4 * (x != x)
__global__ void k(const float* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (x[i] < 1.0f) + 2 * (x[i] >= 1.0f) + 4 * (x[i] != x[i]);
}
