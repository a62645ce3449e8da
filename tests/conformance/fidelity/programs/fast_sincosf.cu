// __sincosf
// fidelity: in=float32:unit out=float32 ulp=0 abs=6e-7
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s, c;
  __sincosf(x[i] * 3.0f, &s, &c);
  out[i] = i & 1 ? s : c;
}
