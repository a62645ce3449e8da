// Inclusive sums of a long array in three launches: sums of blocks, their prefix in one thread, then all.
//
// /// fsr
// [sizes]
// n = {min = 1, max = 67108864, timed = 16777216}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [[launch]]
// entry = "scan_blocks"
// grid = "ceil_div(n, 512)"
// block = 512
// args = ["x", "y", "sums", "n"]
// [[launch]]
// entry = "scan_sums"
// grid = 1
// block = 1
// args = ["sums", "ceil_div(n, 512)"]
// [[launch]]
// entry = "add_sums"
// grid = "ceil_div(n, 512)"
// block = 512
// args = ["y", "sums", "n"]
// [scratch.sums]
// dtype = "float32"
// count = "ceil_div(n, 512)"
// [tolerance]
// sum_length = "n"
// ///
__global__ void scan_blocks(const float *x, float *y, float *sums, int n) {
  __shared__ float part[512];
  int t = threadIdx.x, i = blockIdx.x * 512 + t;
  part[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int d = 1; d < 512; d <<= 1) {
    float v = 0.0f;
    if (t >= d) v = part[t - d];
    __syncthreads();
    part[t] += v;
    __syncthreads();
  }
  if (i < n) y[i] = part[t];
  if (t == 511) sums[blockIdx.x] = part[511];
}
__global__ void scan_sums(float *sums, int blocks) {
  float before = 0.0f;
  for (int b = 0; b < blocks; b++) {
    float own = sums[b];
    sums[b] = before;
    before += own;
  }
}
__global__ void add_sums(float *y, const float *sums, int n) {
  int i = blockIdx.x * 512 + threadIdx.x;
  if (i < n) y[i] += sums[blockIdx.x];
}
