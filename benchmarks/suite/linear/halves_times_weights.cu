// /// fsr
// entry = "project"
// [sizes]
// tokens = {min = 1, max = 16384, timed = 4096}
// dim = {min = 1, max = 8192, timed = 1024}
// hidden = {min = 1, max = 16384, timed = 4096}
// [args]
// act = {role = "in", shape = ["tokens", "dim"], dtype = "bfloat16"}
// w = {role = "in", shape = ["dim", "hidden"], dtype = "bfloat16"}
// res = {role = "in", shape = ["tokens", "hidden"], dtype = "bfloat16"}
// out = {role = "out", shape = ["tokens", "hidden"], dtype = "bfloat16"}
// tokens = {value = "tokens"}
// dim = {value = "dim"}
// hidden = {value = "hidden"}
// [launch]
// grid = "tokens"
// block = 256
// [tolerance]
// sum_length = "dim"
// ///
#include <cuda_bf16.h>
__global__ void project(const __nv_bfloat16 *act, const __nv_bfloat16 *w, const __nv_bfloat16 *res, __nv_bfloat16 *out,
                        int tokens, int dim, int hidden) {
  const int token = blockIdx.x;
  for (int h = threadIdx.x; h < hidden; h += blockDim.x) {
    float sum = 0.f;
    for (int d = 0; d < dim; ++d)
      sum += __bfloat162float(act[token * dim + d]) * __bfloat162float(w[d * hidden + h]);
    out[token * hidden + h] = __float2bfloat16(sum + __bfloat162float(res[token * hidden + h]));
  }
}
