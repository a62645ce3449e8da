// && and || do not evaluate their right side needlessly
// fidelity: in=int32:any out=int32 ulp=0
// numpy: ((x > 0).astype('i4') + (x <= 100)) * 4 + (x > 0) * 2 + ((x > 100) | (x <= 100))
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int calls = 0;
  bool a = x[i] > 0 && ++calls;
  bool b = x[i] > 100 || ++calls;
  out[i] = calls * 4 + a * 2 + b;
}
