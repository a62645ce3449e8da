// A sparse matrix in compressed rows times a vector, a row a thread; rows begin where an array says.
//
// /// fsr
// entry = "spmv_csr"
// [sizes]
// rows = {min = 1, max = 1048576, timed = 262144}
// entries = {min = 1, max = 33554432, timed = 16777216}
// cols = {min = 1, max = 1048576, timed = 262144}
// [args]
// starts = {role = "in", shape = ["rows + 1"], low = 0, high = "entries", sorted = true}
// columns = {role = "in", shape = ["entries"], low = 0, high = "cols - 1"}
// values = {role = "in", shape = ["entries"]}
// x = {role = "in", shape = ["cols"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "entries"
// ///
__global__ void spmv_csr(const int *starts, const int *columns, const float *values, const float *x, float *y,
                         int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float sum = 0.0f;
    for (int j = starts[r]; j < starts[r + 1]; j++) sum += values[j] * x[columns[j]];
    y[r] = sum;
  }
}
