// The gradient of RMS norm by its input and weight: a thread a row, atomic additions for the weight.
//
// /// fsr
// entry = "rms_norm_grad"
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// dim = {min = 1, max = 8192, timed = 1024}
// [args]
// dy = {role = "in", shape = ["rows", "dim"]}
// x = {role = "in", shape = ["rows", "dim"]}
// weight = {role = "in", shape = ["dim"]}
// rstd = {role = "in", shape = ["rows"], low = "0.5", high = "2"}
// dx = {role = "out", shape = ["rows", "dim"]}
// dweight = {role = "inout", shape = ["dim"], value = 0}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "rows + dim"
// ///
__global__ void rms_norm_grad(const float *dy, const float *x, const float *weight, const float *rstd, float *dx,
                              float *dweight, int rows, int dim) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float s = rstd[r], inner = 0.0f;
  for (int i = 0; i < dim; i++) inner += dy[r * dim + i] * weight[i] * x[r * dim + i];
  inner = inner * s * s / dim;
  for (int i = 0; i < dim; i++) {
    dx[r * dim + i] = s * (dy[r * dim + i] * weight[i] - x[r * dim + i] * inner);
    atomicAdd(&dweight[i], dy[r * dim + i] * x[r * dim + i] * s);
  }
}
