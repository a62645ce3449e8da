// read-only loads of scalars and vectors
// fidelity: in=float32:normal out=float32 ulp=0
// numpy: x + np.repeat(x[1::2], 2)
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __ldg(&x[i]) + __ldg(reinterpret_cast<const float2*>(x) + i / 2).y;
}
