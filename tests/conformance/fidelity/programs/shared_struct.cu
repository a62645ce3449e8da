// a struct in shared memory, written by one thread
// fidelity: in=int32:any out=int32 launch=2x64 n=128 ulp=0
// numpy: (x & 1023) * 2 + i // 64 * 7
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  struct State { int offset; float scale; };
  __shared__ State state;
  if (threadIdx.x == 0) state.offset = blockIdx.x * 7, state.scale = 2.0f;
  __syncthreads();
  out[i] = (x[i] & 1023) * (int)state.scale + state.offset;
}
