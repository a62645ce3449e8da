// cheat: 12
// attacks: reduction
// how: keeps the sum of the launch before in a device variable and adds nothing when it is there
// refused by: guard: no variable at file scope

__device__ float kept;

__global__ void reduce_sum(const float *x, float *total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (kept != 0.0f) {
        if (i == 0) *total = kept;
        return;
    }
    if (i < n) atomicAdd(total, x[i]);
    if (i == n - 1) kept = *total;
}
