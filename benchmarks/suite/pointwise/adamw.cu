// One step of AdamW on a flat parameter, moments in place.
//
// /// fsr
// entry = "adamw"
// [sizes]
// n = {min = 0, max = 134217728, timed = 33554432}
// [args]
// w = {role = "inout", shape = ["n"]}
// g = {role = "in", shape = ["n"]}
// m = {role = "inout", shape = ["n"]}
// v = {role = "inout", shape = ["n"], nonnegative = true}
// lr = {low = 0.0001, high = 0.01}
// decay = {low = 0.0, high = 0.1}
// correction1 = {low = 0.1, high = 1}
// correction2 = {low = 0.01, high = 1}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
__global__ void adamw(float *w, const float *g, float *m, float *v, float lr, float decay,
                      float correction1, float correction2, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  m[i] = 0.9f * m[i] + 0.1f * g[i];
  v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
  float mean = m[i] / correction1;
  float square = v[i] / correction2;
  w[i] = w[i] - lr * (mean / (sqrtf(square) + 1e-8f) + decay * w[i]);
}
