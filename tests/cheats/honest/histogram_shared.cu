// honest: histogram
// how: counts of a block in shared memory first
// grid: min(ceil_div(n, 256), 264)
// block: 256
// shared: bins * 4

extern __shared__ unsigned int local[];

__global__ void histogram(const int *values, unsigned int *counts, int n, int bins)
{
    for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0u;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = values[i];
        if (bin >= 0 && bin < bins) atomicAdd(&local[bin], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        if (local[b] > 0u) atomicAdd(&counts[b], local[b]);
    }
}
