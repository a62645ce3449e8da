// threads that leave before the barrier-free rest
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.where(x < 0, 0, x + 1)
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (x[i] < 0) return;
  out[i] = x[i] + 1;
}
