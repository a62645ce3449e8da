// Softmax of short rows, a thread a row, three passes.
//
// /// fsr
// entry = "softmax_small"
// [sizes]
// rows = {min = 1, max = 1048576, timed = 262144}
// cols = {min = 1, max = 1024, timed = 128}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void softmax_small(const float *x, float *y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float top = x[r * cols];
  for (int c = 1; c < cols; c++) top = fmaxf(top, x[r * cols + c]);
  float sum = 0.0f;
  for (int c = 0; c < cols; c++) sum += expf(x[r * cols + c] - top);
  for (int c = 0; c < cols; c++) y[r * cols + c] = expf(x[r * cols + c] - top) / sum;
}
