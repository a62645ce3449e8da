// components of uchar4
// fidelity: in=uint8:any out=uint8 launch=1x64 n=256 ulp=0
__global__ void k(const unsigned char* x, unsigned char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uchar4 v = reinterpret_cast<const uchar4*>(x)[i];
  unsigned char mean = (v.x + v.y + v.z + v.w) / 4;
  reinterpret_cast<uchar4*>(out)[i] = make_uchar4(mean, v.x, v.y, v.z);
}
