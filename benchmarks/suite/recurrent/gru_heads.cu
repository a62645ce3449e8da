// A GRU over a whole sequence, 32 heads of 24, a block a head and batch.
//
// /// fsr
// entry = "gru_heads"
// [sizes]
// B = {min = 1, max = 64, timed = 16}
// T = {min = 1, max = 2048, timed = 1024}
// heads = {min = 1, max = 64, timed = 32}
// D = {min = 1, max = 64, timed = 24}
// [args]
// x = {role = "in", shape = ["B", "T", 3, "heads * D"]}
// R = {role = "in", shape = ["heads", 3, "D", "D"], low = "-0.25", high = "0.25"}
// bias = {role = "in", shape = ["heads", 3, "D"]}
// y = {role = "out", shape = ["B", "T", "heads * D"]}
// [launch]
// grid = ["heads", "B"]
// block = "D"
// shared_bytes = "4 * D"
// [tolerance]
// rtol = 0.001
// atol = 0.0001
// ///
__global__ void gru_heads(const float *x, const float *R, const float *bias, float *y, int T, int heads, int D) {
  extern __shared__ float h[];
  int j = threadIdx.x, head = blockIdx.x, b = blockIdx.y, width = heads * D;
  h[j] = 0.0f;
  __syncthreads();
  for (int t = 0; t < T; t++) {
    float in[3], g[3];
    for (int k = 0; k < 3; k++) {
      in[k] = x[(((size_t)b * T + t) * 3 + k) * width + head * D + j];
      g[k] = bias[(head * 3 + k) * D + j];
      const float *weights = R + (size_t)(head * 3 + k) * D * D;
      for (int i = 0; i < D; i++) g[k] += h[i] * weights[i * D + j];
    }
    float r = 1.0f / (1.0f + expf(-(in[0] + g[0]))), u = 1.0f / (1.0f + expf(-(in[1] + g[1])));
    float z = tanhf(in[2] + r * g[2]);
    float out = (1.0f - u) * z + u * h[j];
    __syncthreads();
    h[j] = out;
    y[((size_t)b * T + t) * width + head * D + j] = out;
    __syncthreads();
  }
}
