// RMS norm: a block a row, a tree in shared memory.
//
// /// fsr
// entry = "rms_norm"
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// dim = {min = 1, max = 16384, timed = 4096}
// [args]
// x = {role = "in", shape = ["rows", "dim"]}
// weight = {role = "in", shape = ["dim"]}
// y = {role = "out", shape = ["rows", "dim"]}
// [launch]
// grid = "rows"
// block = 128
// [tolerance]
// sum_length = "dim"
// ///
__global__ void rms_norm(const float *x, const float *weight, float *y, int rows, int dim) {
  __shared__ float part[128];
  const float *in = x + (size_t)blockIdx.x * dim;
  float *out = y + (size_t)blockIdx.x * dim;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) sum += in[i] * in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  float scale = rsqrtf(part[0] / dim + 1e-6f);
  for (int i = threadIdx.x; i < dim; i += blockDim.x) out[i] = in[i] * scale * weight[i];
}
