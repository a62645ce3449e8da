// Layer norm with mean and variance in two passes, a thread a row; both are kept for the gradient.
//
// /// fsr
// entry = "layer_norm"
// [sizes]
// N = {min = 1, max = 65536, timed = 16384}
// C = {min = 1, max = 16384, timed = 2048}
// [args]
// x = {role = "in", shape = ["N", "C"]}
// weight = {role = "in", shape = ["C"]}
// bias = {role = "in", shape = ["C"]}
// y = {role = "out", shape = ["N", "C"]}
// mean = {role = "out", shape = ["N"]}
// rstd = {role = "out", shape = ["N"]}
// [launch]
// grid = "ceil_div(N, 128)"
// block = 128
// [tolerance]
// sum_length = "C"
// ///
__global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, float *mean, float *rstd,
                           int N, int C) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= N) return;
  const float *in = x + (size_t)row * C;
  float m = 0.0f;
  for (int i = 0; i < C; i++) m += in[i];
  m = m / C;
  float v = 0.0f;
  for (int i = 0; i < C; i++) v += (in[i] - m) * (in[i] - m);
  float s = 1.0f / sqrtf(v / C + 1e-5f);
  for (int i = 0; i < C; i++) y[(size_t)row * C + i] = s * (in[i] - m) * weight[i] + bias[i];
  mean[row] = m;
  rstd[row] = s;
}
