// against: rows
// why: the edge is repeated in place of zeros
// grid: 120
// block: 256
#define RADIUS 4
__constant__ float taps[2 * RADIUS + 1];
__global__ void filter_rows(const float *__restrict__ src, float *__restrict__ dst, int w, int h)
{
    const long long n = (long long)w * h;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) {
        const int x = (int)(i % w), low = -RADIUS, high = min(RADIUS, w - 1 - x);
        float sum = 0.0f;
        for (int j = low; j <= high; j++) sum += taps[RADIUS - j] * src[i + max(j, -x)];
        dst[i] = sum;
    }
}
