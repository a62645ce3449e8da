// names in nested namespaces
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x >> 3) * 3
namespace outer {
namespace inner {
__device__ int thrice(int v) { return 3 * v; }
}  // namespace inner
}  // namespace outer

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  using namespace outer::inner;
  out[i] = thrice(x[i] >> 3);
}
