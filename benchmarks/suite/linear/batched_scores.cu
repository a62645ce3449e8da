// /// fsr
// entry = "query_key"
// [sizes]
// BH = {min = 1, max = 256, timed = 96}
// T = {min = 1, max = 2048, timed = 1024}
// hs = {min = 1, max = 256, timed = 64}
// [args]
// scores = {role = "out", shape = ["BH", "T", "T"]}
// q = {role = "in", shape = ["BH", "T", "hs"]}
// k = {role = "in", shape = ["BH", "T", "hs"]}
// T = {value = "T"}
// hs = {value = "hs"}
// total = {value = "BH * T * T"}
// [launch]
// grid = "ceil_div(BH * T * T, 256)"
// block = 256
// [tolerance]
// sum_length = "hs"
// ///
__global__ void query_key(float *scores, const float *q, const float *k, int T, int hs, int total) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= total) return;
  int t2 = idx % T, t = (idx / T) % T, bh = idx / (T * T);
  const float *qv = q + ((size_t)bh * T + t) * hs, *kv = k + ((size_t)bh * T + t2) * hs;
  float dot = 0.0f;
  for (int i = 0; i < hs; i++) dot += qv[i] * kv[i];
  scores[idx] = dot * 0.125f;
}
