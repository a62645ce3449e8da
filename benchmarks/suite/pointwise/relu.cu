// The larger of x and 0, by a branch.
//
// /// fsr
// entry = "relu"
// [sizes]
// n = {min = 0, max = 134217728, timed = 67108864}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
__global__ void relu(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (x[i] > 0.0f)
      y[i] = x[i];
    else
      y[i] = 0.0f;
  }
}
