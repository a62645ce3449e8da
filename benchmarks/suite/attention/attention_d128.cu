// Attention with heads of 128, a query a thread, two passes over the keys.
//
// /// fsr
// entry = "attention_d128"
// [sizes]
// BH = {min = 1, max = 256, timed = 16}
// T = {min = 1, max = 4096, timed = 2048}
// d = 128
// [args]
// q = {role = "in", shape = ["BH", "T", "d"]}
// k = {role = "in", shape = ["BH", "T", "d"]}
// v = {role = "in", shape = ["BH", "T", "d"]}
// out = {role = "out", shape = ["BH", "T", "d"]}
// [launch]
// grid = ["ceil_div(T, 64)", "BH"]
// block = 64
// [tolerance]
// sum_length = "T"
// ///
__global__ void attention_d128(const float *q, const float *k, const float *v, float *out, int T) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int bh = blockIdx.y;
  if (t >= T) return;
  const float *query = q + ((size_t)bh * T + t) * 128;
  const float *keys = k + (size_t)bh * T * 128;
  const float *values = v + (size_t)bh * T * 128;
  float scale = rsqrtf(128.0f);
  int seen = T;
  float top = -INFINITY;
  for (int s = 0; s < seen; s++) {
    float score = 0.0f;
    for (int i = 0; i < 128; i++) score += query[i] * keys[s * 128 + i];
    top = fmaxf(top, score * scale);
  }
  float sum = 0.0f;
  float acc[128];
  for (int i = 0; i < 128; i++) acc[i] = 0.0f;
  for (int s = 0; s < seen; s++) {
    float score = 0.0f;
    for (int i = 0; i < 128; i++) score += query[i] * keys[s * 128 + i];
    float p = expf(score * scale - top);
    sum += p;
    for (int i = 0; i < 128; i++) acc[i] += p * values[s * 128 + i];
  }
  for (int i = 0; i < 128; i++) out[((size_t)bh * T + t) * 128 + i] = acc[i] / sum;
}
