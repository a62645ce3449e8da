// against: rows
// why: right halo wrong where a row ends inside a block
// grid: ceil_div(w, 128) | h
// block: 128
#define RADIUS 4
__constant__ float taps[2 * RADIUS + 1];
__global__ void filter_rows(const float *__restrict__ src, float *__restrict__ dst, int w, int h)
{
    __shared__ float s[128 + 2 * RADIUS];
    const int x0 = blockIdx.x * 128, t = threadIdx.x;
    for (size_t y = blockIdx.y; y < h; y += gridDim.y) {
        const float *row = src + y * w;
        for (int i = t; i < 128 + 2 * RADIUS; i += 128) {
            const int x = x0 + i - RADIUS;
            s[i] = x >= 0 && (x < w || y + 1 < h) ? row[x] : 0.0f;
        }
        __syncthreads();
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j <= 2 * RADIUS; j++) sum = fmaf(taps[2 * RADIUS - j], s[t + j], sum);
        if (x0 + t < w) dst[y * w + x0 + t] = sum;
        __syncthreads();
    }
}
