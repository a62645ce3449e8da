// A copy, an element a thread, through a matrix's two indices.
//
// /// fsr
// entry = "copy_matrix"
// [sizes]
// rows = {min = 0, max = 65536, timed = 16384}
// cols = {min = 1, max = 65536, timed = 4096}
// [args]
// from = {role = "in", shape = ["rows", "cols"]}
// to = {role = "out", shape = ["rows", "cols"]}
// [launch]
// grid = ["ceil_div(cols, 16)", "ceil_div(rows, 16)"]
// block = [16, 16]
// ///
__global__ void copy_matrix(const float *from, float *to, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) to[r * cols + c] = from[r * cols + c];
}
