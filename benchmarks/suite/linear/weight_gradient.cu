// /// fsr
// entry = "dweight"
// [sizes]
// rows = {min = 1, max = 16384, timed = 4096}
// ins = {min = 1, max = 8192, timed = 1024}
// outs = {min = 1, max = 8192, timed = 1024}
// [args]
// dw = {role = "inout", shape = ["outs", "ins"]}
// dy = {role = "in", shape = ["rows", "outs"]}
// x = {role = "in", shape = ["rows", "ins"]}
// rows = {value = "rows"}
// ins = {value = "ins"}
// outs = {value = "outs"}
// [launch]
// grid = ["ceil_div(ins, 32)", "outs"]
// block = 32
// [tolerance]
// sum_length = "rows"
// ///
__global__ void dweight(float *dw, const float *dy, const float *x, int rows, int ins, int outs) {
  int i = blockIdx.x * 32 + threadIdx.x, o = blockIdx.y;
  if (i >= ins) return;
  float sum = dw[o * ins + i];
  for (int r = 0; r < rows; r++) sum += dy[r * outs + o] * x[r * ins + i];
  dw[o * ins + i] = sum;
}
