// a block of 45 threads: its last warp is partial
// fidelity: in=int32:any out=int32 launch=3x45 n=135 ulp=0
// numpy: x + i % 45 // 32
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + (int)(threadIdx.x / 32);
}
