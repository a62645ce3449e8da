// A transpose that reads along rows and writes along columns.
//
// /// fsr
// entry = "transpose"
// [sizes]
// rows = {min = 1, max = 16384, timed = 8192}
// cols = {min = 1, max = 16384, timed = 8192}
// [args]
// in = {role = "in", shape = ["rows", "cols"]}
// out = {role = "out", shape = ["cols", "rows"]}
// [launch]
// grid = ["ceil_div(cols, 32)", "ceil_div(rows, 8)"]
// block = [32, 8]
// ///
__global__ void transpose(const float *in, float *out, int rows, int cols) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int r = blockIdx.y * 8 + threadIdx.y;
  if (r < rows && c < cols) out[(size_t)c * rows + r] = in[(size_t)r * cols + c];
}
