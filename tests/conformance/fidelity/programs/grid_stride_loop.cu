// a loop with the stride of the whole grid
// fidelity: in=float32:normal out=float32 launch=2x64 n=1000 ulp=0
// numpy: x + np.float32(1)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] + 1.0f;
}
