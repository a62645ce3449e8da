// the lanes that take a branch as a group
// fidelity: in=int32:any out=int32 ulp=0
#include <cooperative_groups.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  out[i] = -1;
  if (x[i] > 0) {
    auto active = cg::coalesced_threads();
    out[i] = (int)(active.thread_rank() * 100 + active.size());
  }
}
