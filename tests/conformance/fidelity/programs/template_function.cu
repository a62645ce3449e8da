// a device function template with a value parameter
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x * 5 - i.astype('i4') * 2
template <int Factor>
__device__ int scaled(int v) {
  return v * Factor;
}

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scaled<5>(x[i]) - scaled<2>(i);
}
