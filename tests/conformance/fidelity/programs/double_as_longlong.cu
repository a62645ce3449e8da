// bits of a double
// fidelity: in=float64:special out=int64 ulp=0
// numpy: x.view('i8')
__global__ void k(const double* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __double_as_longlong(x[i]);
}
