// A linear layer with bias and GELU at its end.
//
// /// fsr
// entry = "linear_gelu"
// [sizes]
// M = {min = 1, max = 8192, timed = 4096}
// N = {min = 1, max = 8192, timed = 4096}
// K = {min = 1, max = 8192, timed = 1024}
// [args]
// x = {role = "in", shape = ["M", "K"]}
// weight = {role = "in", shape = ["K", "N"]}
// bias = {role = "in", shape = ["N"]}
// y = {role = "out", shape = ["M", "N"]}
// [launch]
// grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
// block = [32, 8]
// [tolerance]
// sum_length = "K"
// ///
__global__ void linear_gelu(const float *x, const float *weight, const float *bias, float *y, int M, int N, int K) {
  int n = blockIdx.x * 32 + threadIdx.x, m = blockIdx.y * 8 + threadIdx.y;
  if (m >= M || n >= N) return;
  float v = bias[n];
  for (int k = 0; k < K; k++) v += x[m * K + k] * weight[k * N + n];
  y[m * N + n] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}
