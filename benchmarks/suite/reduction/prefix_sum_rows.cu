// Inclusive sums along every row, by doubling steps in shared memory, a part of a row after the other.
//
// /// fsr
// entry = "scan_rows"
// [sizes]
// rows = {min = 1, max = 8192, timed = 4096}
// cols = {min = 64, max = 65536, timed = 8192}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// [launch]
// grid = "rows"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void scan_rows(const float *x, float *y, int rows, int cols) {
  __shared__ float part[128];
  __shared__ float before;
  int t = threadIdx.x;
  const float *row = x + (size_t)blockIdx.x * cols;
  if (t == 0) before = 0.0f;
  for (int base = 0; base < cols; base += 128) {
    part[t] = base + t < cols ? row[base + t] : 0.0f;
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
      float v = t >= d ? part[t - d] : 0.0f;
      __syncthreads();
      part[t] += v;
      __syncthreads();
    }
    if (base + t < cols) y[(size_t)blockIdx.x * cols + base + t] = before + part[t];
    __syncthreads();
    if (t == 127) before += part[127];
    __syncthreads();
  }
}
