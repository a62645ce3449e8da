// Attention by way of all scores in global memory: scores, softmax, values.
//
// /// fsr
// [sizes]
// BH = {min = 1, max = 128, timed = 96}
// T = {min = 1, max = 2048, timed = 1024}
// d = {min = 1, max = 128, timed = 64}
// [args]
// q = {role = "in", shape = ["BH", "T", "d"]}
// k = {role = "in", shape = ["BH", "T", "d"]}
// v = {role = "in", shape = ["BH", "T", "d"]}
// out = {role = "out", shape = ["BH", "T", "d"]}
// [[launch]]
// entry = "scores"
// grid = ["ceil_div(T, 16)", "ceil_div(T, 16)", "BH"]
// block = [16, 16]
// args = ["q", "k", "att", "T", "d"]
// [[launch]]
// entry = "softmax"
// grid = "ceil_div(BH * T, 64)"
// block = 64
// args = ["att", "BH * T", "T"]
// [[launch]]
// entry = "mix"
// grid = ["ceil_div(d, 16)", "ceil_div(T, 16)", "BH"]
// block = [16, 16]
// args = ["att", "v", "out", "T", "d"]
// [scratch.att]
// dtype = "float32"
// count = "BH * T * T"
// [tolerance]
// sum_length = "T + d"
// ///
__global__ void scores(const float *q, const float *k, float *att, int T, int d) {
  int s = blockIdx.x * 16 + threadIdx.x, t = blockIdx.y * 16 + threadIdx.y;
  if (s >= T || t >= T) return;
  size_t head = blockIdx.z;
  float dot = 0.0f;
  for (int i = 0; i < d; i++) dot += q[(head * T + t) * d + i] * k[(head * T + s) * d + i];
  att[(head * T + t) * T + s] = dot * rsqrtf((float)d);
}
__global__ void softmax(float *att, int rows, int T) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float *row = att + (size_t)r * T;
  float top = -INFINITY, sum = 0.0f;
  for (int s = 0; s < T; s++) top = fmaxf(top, row[s]);
  for (int s = 0; s < T; s++) {
    row[s] = expf(row[s] - top);
    sum += row[s];
  }
  for (int s = 0; s < T; s++) row[s] /= sum;
}
__global__ void mix(const float *att, const float *v, float *out, int T, int d) {
  int i = blockIdx.x * 16 + threadIdx.x, t = blockIdx.y * 16 + threadIdx.y;
  if (i >= d || t >= T) return;
  size_t head = blockIdx.z;
  float sum = 0.0f;
  for (int s = 0; s < T; s++) sum += att[(head * T + t) * T + s] * v[(head * T + s) * d + i];
  out[(head * T + t) * d + i] = sum;
}
