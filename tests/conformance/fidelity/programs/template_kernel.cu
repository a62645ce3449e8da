// a kernel template, instantiated by its name
// fidelity: in=int32:any out=int32 entry=k<3> ulp=0
// numpy: x >> 3
template <int Shift>
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] >> Shift;
}
