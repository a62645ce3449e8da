// a tile partitioned again
// fidelity: in=int32:any out=int32 ulp=0
#include <cooperative_groups.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto four = cg::tiled_partition<4>(warp);
  out[i] = four.shfl(x[i], 3) + (int)four.meta_group_rank();
}
