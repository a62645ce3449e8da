// char arithmetic happens in int and wraps when stored
// fidelity: in=int8:any out=int8 ulp=0
// numpy: (x.astype('i4') * 3 + 100).astype('i1')
__global__ void k(const signed char* x, signed char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (signed char)(x[i] * 3 + 100);
}
