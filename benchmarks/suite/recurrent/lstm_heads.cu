// An LSTM over a whole sequence, 32 heads of 24, a block a head and batch; weights read anew in each step.
//
// /// fsr
// entry = "lstm_heads"
// [sizes]
// B = {min = 1, max = 64, timed = 16}
// T = {min = 1, max = 2048, timed = 1024}
// heads = {min = 1, max = 64, timed = 32}
// D = {min = 1, max = 64, timed = 24}
// [args]
// x = {role = "in", shape = ["B", "T", 4, "heads * D"]}
// R = {role = "in", shape = ["heads", 4, "D", "D"], low = "-0.25", high = "0.25"}
// bias = {role = "in", shape = ["heads", 4, "D"]}
// y = {role = "out", shape = ["B", "T", "heads * D"]}
// [launch]
// grid = ["heads", "B"]
// block = "D"
// shared_bytes = "4 * D"
// [tolerance]
// rtol = 0.001
// atol = 0.0001
// ///
__global__ void lstm_heads(const float *x, const float *R, const float *bias, float *y, int T, int heads, int D) {
  extern __shared__ float h[];
  int j = threadIdx.x, head = blockIdx.x, b = blockIdx.y, width = heads * D;
  float c = 0.0f;
  h[j] = 0.0f;
  __syncthreads();
  for (int t = 0; t < T; t++) {
    float g[4];
    for (int k = 0; k < 4; k++) {
      g[k] = x[(((size_t)b * T + t) * 4 + k) * width + head * D + j] + bias[(head * 4 + k) * D + j];
      const float *weights = R + (size_t)(head * 4 + k) * D * D;
      for (int i = 0; i < D; i++) g[k] += h[i] * weights[i * D + j];
    }
    float i = 1.0f / (1.0f + expf(-g[0])), f = 1.0f / (1.0f + expf(-g[1]));
    float z = tanhf(g[2]), o = 1.0f / (1.0f + expf(-g[3]));
    c = f * c + i * z;
    float out = o * tanhf(c);
    __syncthreads();
    h[j] = out;
    y[((size_t)b * T + t) * width + head * D + j] = out;
    __syncthreads();
  }
}
