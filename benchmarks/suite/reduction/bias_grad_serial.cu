// /// fsr
// entry = "bias_grad"
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// width = {min = 1, max = 65536, timed = 3072}
// [args]
// grad_out = {role = "in", shape = ["rows", "width"]}
// grad_bias = {role = "out", shape = ["width"]}
// rows = {value = "rows"}
// width = {value = "width"}
// [launch]
// grid = "ceil_div(width, 128)"
// block = 128
// [tolerance]
// sum_length = "rows"
// ///
__global__ void bias_grad(const float *grad_out, float *grad_bias, int rows, int width) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= width) return;
  float acc = 0.0f;
  for (int r = 0; r < rows; ++r) acc += grad_out[(size_t)r * width + c];
  grad_bias[c] = acc;
}
