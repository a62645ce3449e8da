// Rows of a table by index, a thread a row.
//
// /// fsr
// entry = "gather_rows"
// [sizes]
// count = {min = 1, max = 262144, timed = 131072}
// dim = {min = 1, max = 1024, timed = 256}
// entries = {min = 1, max = 262144, timed = 100000}
// [args]
// ids = {role = "in", shape = ["count"], low = 0, high = "entries - 1"}
// rows = {role = "in", shape = ["entries", "dim"]}
// out = {role = "out", shape = ["count", "dim"]}
// [launch]
// grid = "ceil_div(count, 128)"
// block = 128
// ///
__global__ void gather_rows(const int *ids, const float *rows, float *out, int count, int dim) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (int c = 0; c < dim; c++) out[(size_t)i * dim + c] = rows[(size_t)ids[i] * dim + c];
}
