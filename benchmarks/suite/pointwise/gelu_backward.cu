// The gradient of GELU with tanh, in the way it is derived on paper.
//
// /// fsr
// entry = "gelu_backward"
// [sizes]
// n = {min = 0, max = 134217728, timed = 67108864}
// [args]
// x = {role = "in", shape = ["n"]}
// dy = {role = "in", shape = ["n"]}
// dx = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void gelu_backward(const float *x, const float *dy, float *dx, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
  float t = tanhf(inner);
  float slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * v * v);
  dx[i] = dy[i] * (0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * slope);
}
