// The sums of a fit of a line through points: five atomic additions a point.
//
// /// fsr
// entry = "line_sums"
// [sizes]
// n = {min = 1, max = 67108864, timed = 1048576}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "in", shape = ["n"]}
// sums = {role = "inout", shape = [4], value = 0}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// sum_length = "n"
// ///
__global__ void line_sums(const float *x, const float *y, float *sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&sums[0], x[i]);
  atomicAdd(&sums[1], y[i]);
  atomicAdd(&sums[2], x[i] * x[i]);
  atomicAdd(&sums[3], x[i] * y[i]);
}
