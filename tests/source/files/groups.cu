#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
using half_t = __half;

__global__ void group_sum(const half_t *x, float *out, int rows, int cols)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0;
    for (int j = tile.thread_rank(); j < cols; j += 32) sum += __half2float(x[row * cols + j]);
    for (int d = 16; d > 0; d /= 2) sum += tile.shfl_down(sum, d);
    if (tile.thread_rank() == 0) out[row] = sum;
}
