// /// fsr
// entry = "encoder"
// [sizes]
// B = {min = 1, max = 64, timed = 8}
// T = {min = 1, max = 4096, timed = 1024}
// C = {min = 1, max = 4096, timed = 768}
// V = {min = 1, max = 65536, timed = 50257}
// [args]
// out = {role = "out", shape = ["B", "T", "C"]}
// tokens = {role = "in", shape = ["B", "T"], dtype = "int32", low = 0, high = "V - 1"}
// wte = {role = "in", shape = ["V", "C"]}
// wpe = {role = "in", shape = ["T", "C"]}
// B = {value = "B"}
// T = {value = "T"}
// C = {value = "C"}
// [launch]
// grid = "ceil_div(B * T * C, 256)"
// block = 256
// ///
__global__ void encoder(float *out, const int *tokens, const float *wte, const float *wpe, int B, int T, int C) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < B * T * C) {
    int bt = idx / C, b = bt / T, t = bt % T, c = idx % C;
    int ix = tokens[b * T + t];
    out[b * T * C + t * C + c] = wte[ix * C + c] + wpe[t * C + c];
  }
}
