// components of float2
// fidelity: in=float32:normal out=float32 launch=1x128 n=256 ulp=0
// numpy: np.stack([x[::2] + x[1::2], x[1::2] * 2], 1).ravel()
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float2 v = reinterpret_cast<const float2*>(x)[i];
  v.x += v.y;
  v.y *= 2.0f;
  reinterpret_cast<float2*>(out)[i] = v;
}
