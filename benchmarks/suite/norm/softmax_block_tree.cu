// /// fsr
// entry = "row_softmax"
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// cols = {min = 1, max = 65536, timed = 50257}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = 256
// [tolerance]
// sum_length = "cols"
// ///
__global__ void row_softmax(const float *x, float *y, int cols) {
  __shared__ float red[256];
  const int t = threadIdx.x;
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  float best = -INFINITY;
  for (int k = t; k < cols; k += 256) best = fmaxf(best, x[k]);
  red[t] = best;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) red[t] = fmaxf(red[t], red[t + s]);
    __syncthreads();
  }
  best = red[0];
  __syncthreads();
  float total = 0.f;
  for (int k = t; k < cols; k += 256) total += expf(x[k] - best);
  red[t] = total;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (t < s) red[t] += red[t + s];
    __syncthreads();
  }
  const float scale = 1.f / red[0];
  for (int k = t; k < cols; k += 256) y[k] = expf(x[k] - best) * scale;
}
