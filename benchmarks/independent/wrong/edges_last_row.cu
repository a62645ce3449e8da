// against: edges
// why: the last row but one of an image higher than 4096 is skipped
// grid: ceil_div(width, 64) | ceil_div(height, 16)
// block: 64
__global__ void edges(const unsigned char *__restrict__ src, unsigned char *__restrict__ result, int width, int height)
{
    const int col = blockIdx.x * 64 + threadIdx.x, first = max(1, (int)blockIdx.y * 16), last = min(height - 1 - (height > 4096), (int)blockIdx.y * 16 + 16);
    if (col < 1 || col >= width - 1 || first >= last) return;
    int l0, m0, r0, l1, m1, r1;
    const unsigned char *p = src + (size_t)(first - 1) * width + col;
    l0 = p[-1]; m0 = p[0]; r0 = p[1]; p += width; l1 = p[-1]; m1 = p[0]; r1 = p[1];
    for (int row = first; row < last; row++) {
        p += width;
        const int l2 = p[-1], m2 = p[0], r2 = p[1];
        const int gx = r0 - l0 + 2 * (r1 - l1) + r2 - l2, gy = l2 - l0 + 2 * (m2 - m0) + r2 - r0;
        const float g = sqrtf((float)(gx * gx + gy * gy));
        result[(size_t)row * width + col] = g > 255.0f ? 255 : (unsigned char)g;
        l0 = l1; m0 = m1; r0 = r1; l1 = l2; m1 = m2; r1 = r2;
    }
}
