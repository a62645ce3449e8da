// min and max of ints and of unsigned
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.minimum(x, i) ^ np.maximum(x, -i) ^ np.maximum(x.view('u4'), np.uint32(7)).view('i4')
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = min(x[i], i) ^ max(x[i], -i) ^ (int)max((unsigned)x[i], 7u);
}
