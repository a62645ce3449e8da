// a lambda that captures by reference
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x >> 4) + i
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int total = 0;
  auto add = [&](int v) { total += v; };
  add(x[i] >> 4);
  add(i);
  out[i] = total;
}
