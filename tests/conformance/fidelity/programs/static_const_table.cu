// a constant array inside a device function
// fidelity: in=int32:any out=float32 ulp=0
// numpy: np.array([1, 0.5, 0.25, 0.125])[x & 3]
__device__ float coefficient(int j) {
  const float table[4] = {1.0f, 0.5f, 0.25f, 0.125f};
  return table[j];
}

__global__ void k(const int* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = coefficient(x[i] & 3);
}
