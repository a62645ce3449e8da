// three-way minimum and maximum of sm_90
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.maximum(np.maximum(x, i), 77) ^ np.minimum(np.minimum(x, -i), 5) ^ np.maximum(np.maximum(x, i - 100), 0)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __vimax3_s32(x[i], i, 77) ^ __vimin3_s32(x[i], -i, 5) ^ __vimax_s32_relu(x[i], i - 100);
}
