// A histogram of bytes, with an atomic addition to global memory for each.
//
// /// fsr
// entry = "histogram_bytes"
// [sizes]
// n = {min = 0, max = 268435456, timed = 134217728}
// [args]
// data = {role = "in", shape = ["n"], dtype = "uint8"}
// counts = {role = "inout", shape = [256], value = 0}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// exact = true
// ///
__global__ void histogram_bytes(const unsigned char *data, int *counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[data[i]], 1);
}
