// Cross-entropy of logits against a class, a thread a row.
//
// /// fsr
// entry = "cross_entropy"
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// classes = {min = 1, max = 65536, timed = 32768}
// [args]
// logits = {role = "in", shape = ["rows", "classes"]}
// labels = {role = "in", shape = ["rows"], low = 0, high = "classes - 1"}
// losses = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "classes"
// ///
__global__ void cross_entropy(const float *logits, const int *labels, float *losses, int rows, int classes) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const float *row = logits + (size_t)r * classes;
  float top = -INFINITY;
  for (int c = 0; c < classes; c++) top = fmaxf(top, row[c]);
  float sum = 0.0f;
  for (int c = 0; c < classes; c++) sum += expf(row[c] - top);
  losses[r] = logf(sum) + top - row[labels[r]];
}
