// pointers that walk and are subtracted
// fidelity: in=int32:any out=int32 ulp=0
// numpy: n - i + x[::-1]
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int* p = x + i;
  const int* end = x + n;
  out[i] = (int)(end - p) + *(end - 1 - i);
}
