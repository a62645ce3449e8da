// shuffles within tiles of 8
// fidelity: in=int32:any out=int32 ulp=0
#include <cooperative_groups.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int v = tile.shfl_down(x[i], 1) ^ tile.shfl_xor(i, 5) ^ tile.shfl(i, 2);
  out[i] = v + (int)tile.meta_group_rank();
}
