// a hand-written sum over a tile of 32
// fidelity: in=float32:normal out=float32 ulp=0
#include <cooperative_groups.h>

__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float v = x[i];
  for (int distance = warp.size() / 2; distance > 0; distance /= 2) v += warp.shfl_down(v, distance);
  out[i] = warp.shfl(v, 0);
}
