// Rotary position embedding: pairs of halves of a head turned by an angle of position and place.
//
// /// fsr
// entry = "rope"
// [sizes]
// B = {min = 1, max = 64, timed = 8}
// T = {min = 1, max = 4096, timed = 2048}
// H = {min = 1, max = 64, timed = 16}
// half = {min = 1, max = 128, timed = 64}
// [args]
// x = {role = "in", shape = ["B", "T", "H", "2 * half"]}
// y = {role = "out", shape = ["B", "T", "H", "2 * half"]}
// cosines = {role = "in", shape = ["T", "half"], low = -1, high = 1}
// sines = {role = "in", shape = ["T", "half"], low = -1, high = 1}
// [launch]
// grid = "ceil_div(B * T * H * half, 256)"
// block = 256
// ///
__global__ void rope(const float *x, float *y, const float *cosines, const float *sines, int B, int T, int H,
                     int half) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= B * T * H * half) return;
  int k = idx % half;
  int h = (idx / half) % H;
  int t = (idx / (half * H)) % T;
  int b = idx / (half * H * T);
  int base = ((b * T + t) * H + h) * 2 * half;
  float c = cosines[t * half + k], s = sines[t * half + k];
  float first = x[base + k], second = x[base + half + k];
  y[base + k] = first * c - second * s;
  y[base + half + k] = first * s + second * c;
}
