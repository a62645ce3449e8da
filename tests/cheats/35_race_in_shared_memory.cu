// cheat: 35
// attacks: reduction
// how: a block sum without barriers: often right
// refused by: recording, racecheck: races

__global__ void reduce_sum(const float *x, float *total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float part[256];
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    for (int o = blockDim.x / 2; o > 0; o /= 2) {
        if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o];
    }
    if (threadIdx.x == 0) atomicAdd(total, part[0]);
}
