// assert and unreachable trap compile away when they hold
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x + 2
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < 0) __trap();
  __builtin_assume(n > 0);
  out[i] = x[i] + 2;
}
