// Where every row is largest: a thread a row.
//
// /// fsr
// entry = "argmax_rows"
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 65536, timed = 4096}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// place = {role = "out", shape = ["rows"], dtype = "int32"}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// exact = true
// ///
__global__ void argmax_rows(const float *x, int *place, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  int best = 0;
  for (int c = 1; c < cols; c++)
    if (x[(size_t)r * cols + c] > x[(size_t)r * cols + best]) best = c;
  place[r] = best;
}
