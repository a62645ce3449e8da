// y = a x + y by blocks of consecutive elements a thread: neighbours are far apart.
//
// /// fsr
// entry = "saxpy_strided"
// [sizes]
// n = {min = 0, max = 134217728, timed = 67108864}
// [args]
// a = {low = -4, high = 4}
// x = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 2048)"
// block = 256
// ///
__global__ void saxpy_strided(float a, const float *x, float *y, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  for (int i = first; i < first + 8 && i < n; i++) y[i] = a * x[i] + y[i];
}
