// short2, short4 and ushort2
// fidelity: in=int16:any out=int16 launch=1x64 n=256 ulp=0
// numpy: x.reshape(-1, 4)[:, ::-1].ravel()
__global__ void k(const short* x, short* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  short4 v = reinterpret_cast<const short4*>(x)[i];
  short2 a = make_short2(v.x, v.y);
  ushort2 b = make_ushort2(v.z, v.w);
  reinterpret_cast<short4*>(out)[i] = make_short4(b.y, b.x, a.y, a.x);
}
