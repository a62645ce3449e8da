// if constexpr chooses the branch
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x - np.trunc(x / 2)
template <bool Negate>
__device__ int pick(int v) {
  if constexpr (Negate) return -(v / 2);
  return v / 2 + v % 2 + v / 2;
}

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = pick<true>(x[i]) + pick<false>(x[i]);
}
