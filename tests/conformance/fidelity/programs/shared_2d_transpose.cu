// a padded two-dimensional shared array
// fidelity: in=float32:normal out=float32 launch=1x16,16 n=256 ulp=0
// numpy: x.reshape(16, 16).T.ravel()
__global__ void k(const float* x, float* out, int n) {
  __shared__ float tile[16][17];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
