// against: heat
// why: a step smaller than the value's ulp forgotten: the change is rounded to 1/1024
// grid: 100
// block: 256
__global__ void heat(const float *__restrict__ power, const float *__restrict__ src, float *__restrict__ dst, int cols, int rows, float cap, float rx, float ry)
{
    const size_t n = (size_t)cols * rows;
    for (size_t i = blockIdx.x * 256u + threadIdx.x; i < n; i += gridDim.x * 256u) {
        const int r = i / cols, c = i % cols;
        const float h = src[i], no = r ? src[i - cols] : h, so = r + 1 < rows ? src[i + cols] : h, we = c ? src[i - 1] : h, ea = c + 1 < cols ? src[i + 1] : h;
        dst[i] = h + 0.0009765625f * rintf(1024.0f * cap) * (power[i] + ry * (so + no - 2.0f * h) + rx * (ea + we - 2.0f * h));
    }
}
