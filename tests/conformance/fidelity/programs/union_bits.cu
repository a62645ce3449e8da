// the bits of a float through a union
// fidelity: in=float32:special out=uint32 ulp=0
// numpy: x.view('u4')
__global__ void k(const float* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  union { float f; unsigned u; } both;
  both.f = x[i];
  out[i] = both.u;
}
