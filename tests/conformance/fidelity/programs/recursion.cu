// a recursive device function
// fidelity: in=int32:small out=int32 ulp=0
__device__ __noinline__ int fibonacci(int v) {
  return v < 2 ? v : fibonacci(v - 1) + fibonacci(v - 2);
}

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fibonacci(x[i] % 15);
}
