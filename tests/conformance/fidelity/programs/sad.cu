// sum of absolute differences
// fidelity: in=int32:any out=uint32 ulp=0
__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __sad(x[i], x[n - 1 - i], 5u) + __usad(x[i], x[n - 1 - i], 7u);
}
