// memcpy and memset in device code
// fidelity: in=int32:any out=int32 ulp=0
// numpy: ~x
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int pair[2];
  memset(pair, 0xff, sizeof(pair));
  memcpy(pair, x + i, sizeof(int));
  out[i] = pair[0] ^ pair[1];
}
