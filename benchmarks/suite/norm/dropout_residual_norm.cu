// Dropout with a given mask, residual and layer norm: three launches through global memory.
//
// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// dim = {min = 1, max = 8192, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "dim"]}
// kept = {role = "in", shape = ["rows", "dim"], dtype = "uint8", low = 0, high = 1}
// residual = {role = "in", shape = ["rows", "dim"]}
// weight = {role = "in", shape = ["dim"]}
// bias = {role = "in", shape = ["dim"]}
// sum = {role = "out", shape = ["rows", "dim"]}
// y = {role = "out", shape = ["rows", "dim"]}
// [[launch]]
// entry = "drop"
// grid = "ceil_div(rows * dim, 256)"
// block = 256
// args = ["x", "kept", "dropped", "rows * dim"]
// [[launch]]
// entry = "add"
// grid = "ceil_div(rows * dim, 256)"
// block = 256
// args = ["dropped", "residual", "sum", "rows * dim"]
// [[launch]]
// entry = "normalise"
// grid = "rows"
// block = 256
// args = ["sum", "weight", "bias", "y", "dim"]
// [scratch.dropped]
// dtype = "float32"
// count = "rows * dim"
// [tolerance]
// sum_length = "dim"
// ///
__global__ void drop(const float *x, const unsigned char *kept, float *dropped, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dropped[i] = kept[i] ? x[i] * 1.25f : 0.0f;
}
__global__ void add(const float *dropped, const float *residual, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = dropped[i] + residual[i];
}
__global__ void normalise(const float *sum, const float *weight, const float *bias, float *y, int dim) {
  __shared__ float part[256];
  const float *row = sum + (size_t)blockIdx.x * dim;
  float total = 0.0f;
  for (int i = threadIdx.x; i < dim; i += 256) total += row[i];
  part[threadIdx.x] = total;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  float mean = part[0] / dim;
  __syncthreads();
  total = 0.0f;
  for (int i = threadIdx.x; i < dim; i += 256) total += (row[i] - mean) * (row[i] - mean);
  part[threadIdx.x] = total;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  float scale = rsqrtf(part[0] / dim + 1e-5f);
  for (int i = threadIdx.x; i < dim; i += 256)
    y[(size_t)blockIdx.x * dim + i] = (row[i] - mean) * scale * weight[i] + bias[i];
}
