// #pragma unroll with and without a count
// fidelity: in=float32:normal out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  #pragma unroll
  for (int j = 0; j < 4; ++j) v = v * 0.5f;
  #pragma unroll 2
  for (int j = 0; j < 6; ++j) v = v + 0.25f;
  out[i] = v;
}
