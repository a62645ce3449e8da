// /// fsr
// entry = "column_moments"
// [sizes]
// samples = {min = 1, max = 65536, timed = 16384}
// channels = {min = 1, max = 8192, timed = 1024}
// [args]
// data = {role = "in", shape = ["samples", "channels"], dtype = "float16"}
// mean = {role = "out", shape = ["channels"]}
// square = {role = "out", shape = ["channels"]}
// samples = {value = "samples"}
// channels = {value = "channels"}
// [launch]
// grid = "channels"
// block = 32
// [tolerance]
// sum_length = "samples"
// ///
#include <cuda_fp16.h>
__global__ void column_moments(const __half *data, float *mean, float *square, int samples, int channels) {
  const int ch = blockIdx.x;
  float m = 0.f, q = 0.f;
  for (int n = threadIdx.x; n < samples; n += 32) {
    float v = __half2float(data[n * channels + ch]);
    m += v;
    q += v * v;
  }
  for (int d = 16; d; d >>= 1) {
    m += __shfl_down_sync(0xffffffffu, m, d);
    q += __shfl_down_sync(0xffffffffu, q, d);
  }
  if (threadIdx.x == 0) {
    mean[ch] = m / samples;
    square[ch] = q / samples;
  }
}
