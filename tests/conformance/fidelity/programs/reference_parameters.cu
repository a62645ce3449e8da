// results through reference parameters
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x & 65535) * 2 - (x >> 16)
__device__ __forceinline__ void split(int v, int& low, int& high) {
  low = v & 0xffff;
  high = v >> 16;
}

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int low, high;
  split(x[i], low, high);
  out[i] = low * 2 - high;
}
