// bit fields, signed and unsigned
// fidelity: in=int32:any out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  struct Packed { unsigned a : 5; int b : 7; unsigned c : 20; } p;
  p.a = x[i];
  p.b = x[i] >> 5;
  p.c = x[i] >> 12;
  out[i] = (int)p.a + p.b * 100 - (int)p.c;
}
