// bits of a float and back
// fidelity: in=float32:special out=int32 ulp=0
// numpy: x.view('i4') ^ 0x40490fdb
__global__ void k(const float* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float_as_int(x[i]) ^ __float_as_int(__int_as_float(0x40490fdb));
}
