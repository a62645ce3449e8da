// /// fsr
// entry = "linear"
// [sizes]
// BT = {min = 1, max = 16384, timed = 8192}
// C = {min = 1, max = 8192, timed = 768}
// OC = {min = 1, max = 16384, timed = 3072}
// [args]
// out = {role = "out", shape = ["BT", "OC"]}
// inp = {role = "in", shape = ["BT", "C"]}
// weight = {role = "in", shape = ["OC", "C"]}
// bias = {role = "in", shape = ["OC"]}
// BT = {value = "BT"}
// C = {value = "C"}
// OC = {value = "OC"}
// [launch]
// grid = ["ceil_div(BT, 16)", "ceil_div(OC, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "C"
// ///
__global__ void linear(float *out, const float *inp, const float *weight, const float *bias, int BT, int C, int OC) {
  int bt = blockIdx.x * blockDim.x + threadIdx.x;
  int oc = blockIdx.y * blockDim.y + threadIdx.y;
  if (bt < BT && oc < OC) {
    float val = bias[oc];
    const float *w = weight + oc * C;
    const float *x = inp + bt * C;
    for (int i = 0; i < C; i++) val += x[i] * w[i];
    out[bt * OC + oc] = val;
  }
}
