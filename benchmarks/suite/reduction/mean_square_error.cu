// The mean of squared differences: sums by grid-stride loops, a tree, an atomic addition.
//
// /// fsr
// entry = "mean_square_error"
// [sizes]
// n = {min = 1, max = 134217728, timed = 67108864}
// [args]
// predicted = {role = "in", shape = ["n"]}
// wanted = {role = "in", shape = ["n"]}
// loss = {role = "inout", shape = [1], value = 0}
// [launch]
// grid = "min(ceil_div(n, 128), 264)"
// block = 128
// [tolerance]
// sum_length = "n"
// ///
__global__ void mean_square_error(const float *predicted, const float *wanted, float *loss, int n) {
  __shared__ float part[128];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    float d = predicted[i] - wanted[i];
    sum += d * d;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(loss, part[0] / n);
}
