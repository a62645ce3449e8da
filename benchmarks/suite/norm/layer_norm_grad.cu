// /// fsr
// entry = "layer_norm_grad"
// [sizes]
// N = {min = 1, max = 65536, timed = 8192}
// C = {min = 1, max = 8192, timed = 768}
// [args]
// dinp = {role = "out", shape = ["N", "C"]}
// dweight = {role = "inout", shape = ["C"]}
// dbias = {role = "inout", shape = ["C"]}
// dout = {role = "in", shape = ["N", "C"]}
// inp = {role = "in", shape = ["N", "C"]}
// weight = {role = "in", shape = ["C"]}
// mean = {role = "in", shape = ["N"]}
// rstd = {role = "in", shape = ["N"], low = "0.5", high = "2"}
// N = {value = "N"}
// C = {value = "C"}
// [launch]
// grid = "ceil_div(N, 64)"
// block = 64
// [tolerance]
// sum_length = "N"
// ///
__global__ void layer_norm_grad(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                                const float *weight, const float *mean, const float *rstd, int N, int C) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= N) return;
  const float *g = dout + row * C, *x = inp + row * C;
  float m = mean[row], r = rstd[row], s = 0.0f, sn = 0.0f;
  for (int i = 0; i < C; i++) {
    float norm = (x[i] - m) * r, d = weight[i] * g[i];
    s += d;
    sn += d * norm;
  }
  s /= C;
  sn /= C;
  for (int i = 0; i < C; i++) {
    float norm = (x[i] - m) * r;
    atomicAdd(&dbias[i], g[i]);
    atomicAdd(&dweight[i], norm * g[i]);
    dinp[row * C + i] = (weight[i] * g[i] - s - norm * sn) * r;
  }
}
