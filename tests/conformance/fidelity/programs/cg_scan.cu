// inclusive and exclusive scans over a tile
// fidelity: in=int32:small out=int32 ulp=0
// numpy: np.cumsum(x.reshape(8, 32), 1).ravel() * 2 + x
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[i] = cg::inclusive_scan(tile, x[i], cg::plus<int>()) * 3 - cg::exclusive_scan(tile, x[i], cg::plus<int>());
}
