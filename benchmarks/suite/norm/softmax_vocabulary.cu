// /// fsr
// entry = "softmax_rows"
// [sizes]
// N = {min = 1, max = 65536, timed = 8192}
// C = {min = 1, max = 65536, timed = 50257}
// [args]
// out = {role = "out", shape = ["N", "C"]}
// inp = {role = "in", shape = ["N", "C"]}
// N = {value = "N"}
// C = {value = "C"}
// [launch]
// grid = "ceil_div(N, 64)"
// block = 64
// [tolerance]
// sum_length = "C"
// ///
__global__ void softmax_rows(float *out, const float *inp, int N, int C) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    const float *inp_row = inp + (size_t)i * C;
    float *out_row = out + (size_t)i * C;
    float maxval = -INFINITY;
    for (int j = 0; j < C; j++)
      if (inp_row[j] > maxval) maxval = inp_row[j];
    double sum = 0.0;
    for (int j = 0; j < C; j++) {
      out_row[j] = expf(inp_row[j] - maxval);
      sum += out_row[j];
    }
    for (int j = 0; j < C; j++) out_row[j] /= (float)sum;
  }
}
