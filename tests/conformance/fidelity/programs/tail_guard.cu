// a last block that is only partly used
// fidelity: in=int32:any out=int32 launch=3x96 n=257 ulp=0
// numpy: x - i.astype('i4')
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] - i;
}
