// float to unsigned saturates at 0 and 2^32 - 1
// fidelity: in=float32:special out=uint32 ulp=0
__global__ void k(const float* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = __float2uint_rn(x[i]); break;
    case 1: out[i] = __float2uint_rz(x[i]); break;
    case 2: out[i] = __float2uint_ru(x[i]); break;
    case 3: out[i] = __float2uint_rd(x[i]); break;
  }
}
