// a template over the element type
// fidelity: in=float32:small out=float32 ulp=0
// numpy: (d * d).astype('f4') + x * x
template <class T>
__device__ T square(T v) {
  return v * v;
}

__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)square<double>(x[i]) + square<float>(x[i]);
}
