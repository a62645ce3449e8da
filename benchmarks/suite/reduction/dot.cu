// A dot product: a tree in shared memory with a modulus, then one atomic addition a block.
//
// /// fsr
// entry = "dot"
// [sizes]
// n = {min = 0, max = 134217728, timed = 67108864}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "in", shape = ["n"]}
// result = {role = "inout", shape = [1], value = 0}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// [tolerance]
// sum_length = "n"
// ///
__global__ void dot(const float *x, const float *y, float *result, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] * y[i] : 0.0f;
  __syncthreads();
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (threadIdx.x % (2 * s) == 0) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, part[0]);
}
