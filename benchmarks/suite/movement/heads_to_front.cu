// /// fsr
// entry = "permute_heads"
// [sizes]
// B = {min = 1, max = 64, timed = 8}
// N = {min = 1, max = 4096, timed = 1024}
// NH = {min = 1, max = 64, timed = 16}
// d = {min = 1, max = 256, timed = 64}
// [args]
// inp = {role = "in", shape = ["B", "N", "NH", "d"]}
// out = {role = "out", shape = ["B", "NH", "d", "N"]}
// B = {value = "B"}
// N = {value = "N"}
// NH = {value = "NH"}
// d = {value = "d"}
// [launch]
// grid = "ceil_div(B * N * NH * d, 256)"
// block = 256
// ///
__global__ void permute_heads(const float *inp, float *out, int B, int N, int NH, int d) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < B * NH * N * d) {
    int b = idx / (NH * N * d);
    int rest = idx % (NH * N * d);
    int n = rest / (NH * d);
    rest = rest % (NH * d);
    int nh = rest / d;
    int c = rest % d;
    out[((b * NH + nh) * d + c) * N + n] = inp[idx];
  }
}
