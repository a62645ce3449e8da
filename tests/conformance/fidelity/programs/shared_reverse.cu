// static shared memory: a block reversed
// fidelity: in=float32:normal out=float32 launch=2x128 ulp=0
// numpy: x.reshape(2, 128)[:, ::-1].ravel()
__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float tile[128];
  tile[threadIdx.x] = x[i];
  __syncthreads();
  out[i] = tile[127 - threadIdx.x];
}
