// threads of one label form a group
// fidelity: in=int32:any out=int32 ulp=0
#include <cooperative_groups.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(tile, x[i] & 3);
  out[i] = (int)(same.size() * 100 + same.thread_rank());
}
