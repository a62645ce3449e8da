// A transpose through a square of shared memory without padding: all of a column in one bank.
//
// /// fsr
// entry = "transpose_tiled"
// [sizes]
// rows = {min = 1, max = 16384, timed = 8192}
// cols = {min = 1, max = 16384, timed = 8192}
// [args]
// in = {role = "in", shape = ["rows", "cols"]}
// out = {role = "out", shape = ["cols", "rows"]}
// [launch]
// grid = ["ceil_div(cols, 16)", "ceil_div(rows, 16)"]
// block = [16, 16]
// ///
__global__ void transpose_tiled(const float *in, float *out, int rows, int cols) {
  __shared__ float tile[16][16];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = in[r * cols + c];
  __syncthreads();
  c = blockIdx.y * 16 + threadIdx.x;
  r = blockIdx.x * 16 + threadIdx.y;
  if (r < cols && c < rows) out[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}
