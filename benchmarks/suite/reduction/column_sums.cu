// Sums over the columns of a matrix, a block each, whose threads read a column: 4 bytes of every row.
//
// /// fsr
// entry = "column_sums"
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 16384, timed = 4096}
// [args]
// a = {role = "in", shape = ["rows", "cols"]}
// sums = {role = "out", shape = ["cols"]}
// [launch]
// grid = "cols"
// block = 128
// [tolerance]
// sum_length = "rows"
// ///
__global__ void column_sums(const float *a, float *sums, int rows, int cols) {
  __shared__ float part[128];
  float sum = 0.0f;
  for (int r = threadIdx.x; r < rows; r += 128) sum += a[(size_t)r * cols + blockIdx.x];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
