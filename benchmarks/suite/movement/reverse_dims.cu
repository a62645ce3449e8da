// /// fsr
// entry = "transpose4d"
// [sizes]
// d1 = {min = 1, max = 128, timed = 32}
// d2 = {min = 1, max = 128, timed = 64}
// d3 = {min = 1, max = 128, timed = 64}
// d4 = {min = 1, max = 128, timed = 128}
// [args]
// in = {role = "in", shape = ["d1", "d2", "d3", "d4"]}
// out = {role = "out", shape = ["d4", "d3", "d2", "d1"]}
// d1 = {value = "d1"}
// d2 = {value = "d2"}
// d3 = {value = "d3"}
// d4 = {value = "d4"}
// [launch]
// grid = ["ceil_div(d4, 32)", "d3", "d1 * d2"]
// block = 32
// ///
__global__ void transpose4d(const float *in, float *out, int d1, int d2, int d3, int d4) {
  int l = blockIdx.x * 32 + threadIdx.x;
  int k = blockIdx.y;
  int j = blockIdx.z % d2;
  int i = blockIdx.z / d2;
  if (l < d4) out[((l * d3 + k) * d2 + j) * d1 + i] = in[((i * d2 + j) * d3 + k) * d4 + l];
}
