// cg::reduce of floats over tiles of 16
// fidelity: in=float32:normal out=float32 ulp=0
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  out[i] = cg::reduce(tile, x[i], cg::plus<float>());
}
