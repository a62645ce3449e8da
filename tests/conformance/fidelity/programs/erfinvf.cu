// erfinvf on unit values
// fidelity: in=float32:unit out=float32 ulp=3
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = erfinvf(x[i]);
}
