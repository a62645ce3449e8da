// y = A x: a block a row, a tree in shared memory.
//
// /// fsr
// entry = "gemv_rows"
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// cols = {min = 1, max = 65536, timed = 8192}
// [args]
// A = {role = "in", shape = ["rows", "cols"]}
// x = {role = "in", shape = ["cols"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "rows"
// block = 64
// [tolerance]
// sum_length = "cols"
// ///
__global__ void gemv_rows(const float *A, const float *x, float *y, int rows, int cols) {
  __shared__ float part[64];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 64) sum += A[(size_t)blockIdx.x * cols + c] * x[c];
  part[threadIdx.x] = sum;
  for (int s = 32; s > 0; s /= 2) {
    __syncthreads();
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
