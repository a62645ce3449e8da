// a warp's sum by xor shuffles
// fidelity: in=float32:normal out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  for (int distance = 16; distance > 0; distance /= 2) v += __shfl_xor_sync(0xffffffffu, v, distance);
  out[i] = v;
}
