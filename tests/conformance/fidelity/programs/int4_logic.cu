// components of int4 and uint4
// fidelity: in=int32:any out=int32 launch=1x64 n=256 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int4 v = reinterpret_cast<const int4*>(x)[i];
  uint4 u = make_uint4(v.x, v.y, v.z, v.w);
  reinterpret_cast<int4*>(out)[i] = make_int4(u.x >> 1, v.y >> 1, u.z ^ u.w, v.w);
}
