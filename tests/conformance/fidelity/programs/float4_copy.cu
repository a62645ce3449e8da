// 16-byte loads and stores
// fidelity: in=float32:normal out=float32 launch=1x64 n=256 ulp=0
// numpy: x.reshape(-1, 4)[:, ::-1].ravel()
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = reinterpret_cast<const float4*>(x)[i];
  reinterpret_cast<float4*>(out)[i] = make_float4(v.w, v.z, v.y, v.x);
}
