// unsigned arithmetic wraps
// fidelity: in=uint32:any out=uint32 ulp=0
// numpy: x * np.uint32(2654435761) - np.uint32(7)
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 2654435761u - 7u;
}
