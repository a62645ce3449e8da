// a fold over a parameter pack
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x + i + 4
template <class... T>
__device__ int total(T... terms) {
  return (0 + ... + (int)terms);
}

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = total(x[i], i, 7, -3);
}
