// against: edges
// why: a tile with a border in shared memory
// grid: ceil_div(width, 32) | ceil_div(height, 8)
// block: 32 8
__global__ void edges(const unsigned char *__restrict__ src, unsigned char *__restrict__ result, int width, int height)
{
    __shared__ unsigned char s[10][36];
    const int x0 = blockIdx.x * 32 - 1, y0 = blockIdx.y * 8 - 1, t = threadIdx.y * 32 + threadIdx.x;
    for (int i = t; i < 340; i += 256) {
        const int x = x0 + i % 34, y = y0 + i / 34;
        s[i / 34][i % 34] = x >= 0 && y >= 0 && x < width && y < height ? src[(size_t)y * width + x] : 0;
    }
    __syncthreads();
    const int tx = threadIdx.x, ty = threadIdx.y, col = x0 + 1 + tx, row = y0 + 1 + ty;
    if (col < 1 || col >= width - 1 || row < 1 || row >= height - 1) return;
    const float gx = (float)(s[ty][tx + 2] - s[ty][tx]) + 2.0f * (float)(s[ty + 1][tx + 2] - s[ty + 1][tx]) + (float)(s[ty + 2][tx + 2] - s[ty + 2][tx]);
    const float gy = (float)(s[ty + 2][tx] - s[ty][tx]) + 2.0f * (float)(s[ty + 2][tx + 1] - s[ty][tx + 1]) + (float)(s[ty + 2][tx + 2] - s[ty][tx + 2]);
    result[(size_t)row * width + col] = (unsigned char)fminf(255.0f, sqrtf(fmaf(gx, gx, gy * gy)));
}
