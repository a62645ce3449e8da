// /// fsr
// entry = "nchw2nhwc"
// [sizes]
// n = {min = 1, max = 256, timed = 32}
// c = {min = 1, max = 1024, timed = 256}
// hw = {min = 1, max = 16384, timed = 3136}
// [args]
// src = {role = "in", shape = ["n", "c", "hw"], dtype = "bfloat16"}
// dst = {role = "out", shape = ["n", "hw", "c"], dtype = "bfloat16"}
// c = {value = "c"}
// hw = {value = "hw"}
// [launch]
// grid = ["ceil_div(hw, 256)", "c", "n"]
// block = 256
// ///
#include <cuda_bf16.h>
__global__ void nchw2nhwc(const __nv_bfloat16 *__restrict__ src, __nv_bfloat16 *__restrict__ dst, unsigned c, unsigned hw) {
  unsigned p = blockIdx.x * 256u + threadIdx.x, ch = blockIdx.y;
  if (p >= hw) return;
  size_t image = (size_t)blockIdx.z * c * hw;
  dst[image + (size_t)p * c + ch] = src[image + (size_t)ch * hw + p];
}
