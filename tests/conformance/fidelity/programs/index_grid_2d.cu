// coordinates in a two-dimensional grid
// fidelity: in=int32:any out=int32 launch=4,4x8,8 n=1024 ulp=0
// numpy: x.reshape(32, 32).T.ravel()
__global__ void k(const int* x, int* out, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  int i = row * 32 + column;
  if (i < n) out[i] = x[column * 32 + row];
}
