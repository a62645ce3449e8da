// against: turned
// why: a block of 32 points with 33 features spills into the next row
// grid: ceil_div(points, 32)
// block: 256
__global__ void turned(const float *__restrict__ input, float *__restrict__ output, int points, int features)
{
    __shared__ float s[32 * 33 + 64];
    const int p0 = blockIdx.x * 32, count = min(32, points - p0);
    for (int i = threadIdx.x; i < count * features; i += 256) s[i / features * 33 + i % features] = input[(size_t)p0 * features + i];
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * features; i += 256) {
        const int f = i / 32, p = i % 32;
        if (p < count) output[(size_t)points * f + p0 + p] = s[p * 33 + f];
    }
}
