// a sum in shared memory by halves
// fidelity: in=float32:normal out=float32 launch=4x64 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float part[64];
  part[threadIdx.x] = x[i];
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  out[i] = part[0];
}
