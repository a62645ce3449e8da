// A sparse matrix in compressed rows times a vector, a row a thread; rows of one length, columns anywhere.
//
// /// fsr
// entry = "spmv"
// [sizes]
// rows = {min = 1, max = 1048576, timed = 524288}
// width = {min = 1, max = 256, timed = 64}
// cols = {min = 1, max = 1048576, timed = 524288}
// [args]
// columns = {role = "in", shape = ["rows", "width"], low = 0, high = "cols - 1"}
// values = {role = "in", shape = ["rows", "width"]}
// x = {role = "in", shape = ["cols"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "width"
// ///
__global__ void spmv(const int *columns, const float *values, const float *x, float *y, int rows, int width) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0.0f;
  for (int j = r * width; j < (r + 1) * width; j++) sum += values[j] * x[columns[j]];
  y[r] = sum;
}
