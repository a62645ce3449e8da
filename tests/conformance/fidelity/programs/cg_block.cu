// a thread block as a group
// fidelity: in=int32:any out=int32 launch=2x128 ulp=0
// numpy: x.reshape(2, 128)[:, ::-1].ravel()
#include <cooperative_groups.h>

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  namespace cg = cooperative_groups;
  __shared__ int tile[128];
  cg::thread_block block = cg::this_thread_block();
  tile[block.thread_rank()] = x[i];
  block.sync();
  out[i] = tile[block.size() - 1 - block.thread_rank()];
}
