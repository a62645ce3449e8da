// honest: reduction
// how: partial sums in a scratch buffer, then one block; no atomics
// launch: reduce_blocks | min(ceil_div(n, 256), 64) | 256 | 0 | x part n
// launch: reduce_parts | 1 | 256 | 0 | part total int32=min(ceil_div(n, 256), 64)
// scratch: part float32 64

__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float warps[8];
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < 8 ? warps[threadIdx.x] : 0.0f;
    for (int o = 4; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
    return v;
}

__global__ void reduce_blocks(const float *x, float *part, int n)
{
    float v = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) part[blockIdx.x] = v;
}

__global__ void reduce_parts(const float *part, float *total, int count)
{
    float v = 0.0f;
    for (int i = threadIdx.x; i < count; i += 256) v += part[i];
    v = block_sum(v);
    if (threadIdx.x == 0) *total += v;
}
