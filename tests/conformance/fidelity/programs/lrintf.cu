// lrintf and lroundf
// fidelity: in=float32:halves out=int64 ulp=0
__global__ void k(const float* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = lrintf(x[i]) * 1000 + lroundf(x[i]);
}
