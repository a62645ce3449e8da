// float to long long saturates
// fidelity: in=float32:special out=int64 ulp=0
__global__ void k(const float* x, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __float2ll_rn(x[i]); break;
    case 1: out[i] = __float2ll_rz(x[i]); break;
    case 2: out[i] = __float2ll_ru(x[i]); break;
    case 3: out[i] = __float2ll_rd(x[i]); break;
  }
}
