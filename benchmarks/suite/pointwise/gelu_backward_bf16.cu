// /// fsr
// entry = "gelu_grad"
// [sizes]
// n = {min = 1, max = 100000000, timed = 25165824}
// [args]
// dinp = {role = "out", shape = ["n"], dtype = "bfloat16"}
// inp = {role = "in", shape = ["n"], dtype = "bfloat16"}
// dout = {role = "in", shape = ["n"], dtype = "bfloat16"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
#include <cuda_bf16.h>
__global__ void gelu_grad(__nv_bfloat16 *dinp, const __nv_bfloat16 *inp, const __nv_bfloat16 *dout, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = (float)inp[i];
    float cube = 0.044715f * x * x * x;
    float arg = 0.7978845608f * (x + cube);
    float th = tanhf(arg);
    float ch = coshf(arg);
    float sech = 1.0f / (ch * ch);
    float grad = 0.5f * (1.0f + th) + x * 0.5f * sech * 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
    dinp[i] = (__nv_bfloat16)(grad * (float)dout[i]);
  }
}
