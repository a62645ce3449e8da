// votes within tiles of 16
// fidelity: in=int32:any out=uint32 ulp=0
#include <cooperative_groups.h>

__global__ void k(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  bool yes = x[i] > 0;
  out[i] = tile.ballot(yes) * 4 + (tile.any(yes) ? 2 : 0) + (tile.all(yes) ? 1 : 0);
}
