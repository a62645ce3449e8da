// An array backwards, through shared memory as in tutorials.
//
// /// fsr
// entry = "reverse"
// [sizes]
// n = {min = 0, max = 134217728, timed = 67108864}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void reverse(const float *x, float *y, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tile[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n) y[n - 1 - i] = tile[threadIdx.x];
}
