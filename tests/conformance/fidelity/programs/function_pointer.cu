// a call through a pointer to a device function
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.where(x & 1, (x >> 2) * 2, -(x >> 2))
__device__ int twice(int v) { return v * 2; }
__device__ int negated(int v) { return -v; }

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int (*f)(int) = x[i] & 1 ? twice : negated;
  out[i] = f(x[i] >> 2);
}
