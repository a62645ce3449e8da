// The largest of every 2 x 2 x 2 cells of volumes, an output a thread, all divisions by the volume's sides.
//
// /// fsr
// entry = "max_pool3d"
// [sizes]
// N = {min = 1, max = 512, timed = 128}
// D = {min = 1, max = 64, timed = 32}
// H = {min = 1, max = 64, timed = 32}
// W = {min = 1, max = 64, timed = 32}
// [args]
// x = {role = "in", shape = ["N", "2 * D", "2 * H", "2 * W"]}
// y = {role = "out", shape = ["N", "D", "H", "W"]}
// [launch]
// grid = "ceil_div(N * D * H * W, 256)"
// block = 256
// ///
__global__ void max_pool3d(const float *x, float *y, int N, int D, int H, int W) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * D * H * W) return;
  int w = idx % W, h = idx / W % H, d = idx / (W * H) % D, n = idx / (W * H * D);
  float best = -INFINITY;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 2; k++) {
        float v = x[(((size_t)n * 2 * D + 2 * d + i) * 2 * H + 2 * h + j) * 2 * W + 2 * w + k];
        if (v > best) best = v;
      }
  y[idx] = best;
}
