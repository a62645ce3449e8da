// 64-bit division
// fidelity: in=int64:any out=int64 ulp=0
__global__ void k(const long long* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (i * 1000003ll + 17) - x[i] % (i + 5);
}
