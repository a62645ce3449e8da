// a __device__ array with an initial value
// fidelity: in=int32:any out=float32 ulp=0
// numpy: np.array([0.5, 1.5, -2.0, 8.0])[x & 3]
__device__ float weights[4] = {0.5f, 1.5f, -2.0f, 8.0f};

__global__ void k(const int* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = weights[x[i] & 3];
}
