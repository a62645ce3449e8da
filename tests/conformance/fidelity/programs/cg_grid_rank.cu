// ranks in the grid
// fidelity: in=int32:any out=int32 launch=4x64 ulp=0
// numpy: x + 256
#include <cooperative_groups.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  auto grid = cg::this_grid();
  out[grid.thread_rank()] = x[i] + (int)grid.size();
}
