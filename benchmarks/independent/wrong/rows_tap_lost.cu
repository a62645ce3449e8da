// against: rows
// why: the outermost tap is left out where it is small
// grid: 120
// block: 256
#define RADIUS 4
__constant__ float taps[2 * RADIUS + 1];
__global__ void filter_rows(const float *__restrict__ src, float *__restrict__ dst, int w, int h)
{
    const long long n = (long long)w * h;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) {
        int low = max(-RADIUS, -(int)(i % w));
        const int x = (int)(i % w), high = min(RADIUS, w - 1 - x);
        float sum = 0.0f;
        if (fabsf(taps[8]) < 0.01f) low = max(low, 1 - RADIUS);
        for (int j = low; j <= high; j++) sum += taps[RADIUS - j] * src[i + j];
        dst[i] = sum;
    }
}
