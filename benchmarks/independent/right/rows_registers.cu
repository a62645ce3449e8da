// against: rows
// why: four results a thread from a window in registers
// grid: ceil_div(w, 256) | ceil_div(h, 4)
// block: 64 4
#define RADIUS 4
__constant__ float taps[2 * RADIUS + 1];
__global__ void filter_rows(const float *__restrict__ src, float *__restrict__ dst, int w, int h)
{
    const int x = (blockIdx.x * 64 + threadIdx.x) * 4, y = blockIdx.y * 4 + threadIdx.y;
    if (x >= w || y >= h) return;
    const float *row = src + (size_t)y * w;
    float v[12];
#pragma unroll
    for (int i = 0; i < 12; i++) { const int at = x + i - RADIUS; v[i] = (unsigned)at < (unsigned)w ? __ldg(row + at) : 0.0f; }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float sum = 0.0f;
#pragma unroll
        for (int j = -RADIUS; j <= RADIUS; j++) sum += taps[RADIUS - j] * v[k + j + RADIUS];
        if (x + k < w) dst[(size_t)y * w + x + k] = sum;
    }
}
