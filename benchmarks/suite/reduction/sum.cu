// A sum of all elements, each by an atomic addition of its own to one of the partial sums.
//
// /// fsr
// entry = "sum"
// [sizes]
// n = {min = 0, max = 134217728, timed = 67108864}
// [args]
// x = {role = "in", shape = ["n"]}
// total = {role = "inout", shape = [1], value = 0}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// sum_length = "n"
// ///
__global__ void sum(const float *x, float *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(total, x[i]);
}
