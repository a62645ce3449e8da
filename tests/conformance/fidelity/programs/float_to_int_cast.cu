// a cast truncates
// fidelity: in=float32:small out=int32 ulp=0
// numpy: x.astype('i4') * 10 + (-x).astype('i4')
__global__ void k(const float* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (int)x[i] * 10 + (int)(-x[i]);
}
