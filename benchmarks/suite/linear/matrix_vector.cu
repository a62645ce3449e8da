// /// fsr
// entry = "gemv"
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 65536, timed = 8192}
// [args]
// A = {role = "in", shape = ["rows", "cols"]}
// x = {role = "in", shape = ["cols"]}
// y = {role = "inout", shape = ["rows"]}
// alpha = {role = "scalar", dtype = "float32", low = "0.5", high = "2"}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void gemv(const float *A, const float *x, float *y, float alpha, int rows, int cols) {
  int r = threadIdx.x + blockIdx.x * blockDim.x;
  if (r < rows) {
    float dot = 0;
    for (int c = 0; c < cols; c++) dot += A[(size_t)r * cols + c] * x[c];
    y[r] += alpha * dot;
  }
}
