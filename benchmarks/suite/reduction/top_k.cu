// The k largest of every row in falling order: a thread a row, k passes, each for the next smaller one.
//
// /// fsr
// entry = "top_k"
// [sizes]
// rows = {min = 1, max = 65536, timed = 4096}
// cols = {min = 8, max = 65536, timed = 4096}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// values = {role = "out", shape = ["rows", 8]}
// places = {role = "out", shape = ["rows", 8], dtype = "int32"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// exact = true
// ///
__global__ void top_k(const float *x, float *values, int *places, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const float *row = x + (size_t)r * cols;
  float last = INFINITY;
  int last_place = -1;
  for (int k = 0; k < 8; k++) {
    float best = -INFINITY;
    int place = -1;
    for (int c = 0; c < cols; c++) {
      float v = row[c];
      bool left = v < last || (v == last && c > last_place);
      if (left && (place < 0 || v > best)) {
        best = v;
        place = c;
      }
    }
    values[r * 8 + k] = best;
    places[r * 8 + k] = place;
    last = best;
    last_place = place;
  }
}
