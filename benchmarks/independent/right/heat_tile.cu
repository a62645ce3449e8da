// against: heat
// why: a tile with its border in shared memory, fused multiply-adds
// grid: ceil_div(cols, 32) | ceil_div(rows, 8)
// block: 32 8
__global__ void heat(const float *__restrict__ power, const float *__restrict__ src, float *__restrict__ dst, int cols, int rows, float cap, float rx, float ry)
{
    __shared__ float s[10][34];
    const int c0 = blockIdx.x * 32, r0 = blockIdx.y * 8;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        const int r = min(max(r0 + i / 34 - 1, 0), rows - 1), c = min(max(c0 + i % 34 - 1, 0), cols - 1);
        s[i / 34][i % 34] = src[(size_t)r * cols + c];
    }
    __syncthreads();
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1, c = c0 + tx - 1, r = r0 + ty - 1;
    if (c >= cols || r >= rows) return;
    const float h = s[ty][tx], v = fmaf(-2.0f, h, s[ty - 1][tx] + s[ty + 1][tx]), u = fmaf(-2.0f, h, s[ty][tx - 1] + s[ty][tx + 1]);
    dst[(size_t)r * cols + c] = fmaf(cap, fmaf(v, ry, fmaf(u, rx, power[(size_t)r * cols + c])), h);
}
