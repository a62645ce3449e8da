// an int rounds to the nearest float
// fidelity: in=int32:any out=float32 ulp=0
// numpy: x.astype('f4')
__global__ void k(const int* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)x[i];
}
