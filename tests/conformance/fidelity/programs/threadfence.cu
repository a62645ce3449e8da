// fences between stores
// fidelity: in=int32:any out=int32 ulp=0
// numpy: x + 1
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i];
  __threadfence();
  __threadfence_block();
  out[i] += 1;
}
