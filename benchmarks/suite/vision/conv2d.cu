// A 3 x 3 convolution of images with several channels, no padding, an output a thread.
//
// /// fsr
// entry = "conv2d"
// [sizes]
// N = {min = 1, max = 64, timed = 16}
// C = {min = 1, max = 256, timed = 64}
// K = {min = 1, max = 256, timed = 128}
// H = {min = 3, max = 256, timed = 58}
// W = {min = 3, max = 256, timed = 58}
// [args]
// x = {role = "in", shape = ["N", "C", "H", "W"]}
// weight = {role = "in", shape = ["K", "C", 3, 3]}
// y = {role = "out", shape = ["N", "K", "H - 2", "W - 2"]}
// [launch]
// grid = ["ceil_div(W - 2, 16)", "ceil_div(H - 2, 16)", "N * K"]
// block = [16, 16]
// [tolerance]
// sum_length = "9 * C"
// ///
__global__ void conv2d(const float *x, const float *weight, float *y, int N, int C, int K, int H, int W) {
  int ow = blockIdx.x * blockDim.x + threadIdx.x;
  int oh = blockIdx.y * blockDim.y + threadIdx.y;
  int n = blockIdx.z / K, k = blockIdx.z % K;
  int OH = H - 2, OW = W - 2;
  if (oh >= OH || ow >= OW) return;
  float sum = 0.0f;
  for (int c = 0; c < C; c++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        sum += x[((n * C + c) * H + oh + i) * W + ow + j] * weight[((k * C + c) * 3 + i) * 3 + j];
  y[((n * K + k) * OH + oh) * OW + ow] = sum;
}
