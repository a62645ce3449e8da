// against: heat
// why: rx and ry exchanged: right where they are equal
// grid: ceil_div(cols, 64) | ceil_div(rows, 8)
// block: 64
__global__ void heat(const float *__restrict__ power, const float *__restrict__ src, float *__restrict__ dst, int cols, int rows, float cap, float rx, float ry)
{
    const int c = blockIdx.x * 64 + threadIdx.x, first = blockIdx.y * 8, last = min(rows, first + 8);
    if (c >= cols) return;
    const int l = max(c - 1, 0), e = min(c + 1, cols - 1);
    float above = src[(size_t)max(first - 1, 0) * cols + c], here = src[(size_t)first * cols + c];
    for (int r = first; r < last; r++) {
        const float *row = src + (size_t)r * cols;
        const float below = r + 1 < rows ? row[cols + c] : here;
        dst[(size_t)r * cols + c] = here + cap * (power[(size_t)r * cols + c] + (below + above - 2.0f * here) * rx + (row[e] + row[l] - 2.0f * here) * ry);
        above = here; here = below;
    }
}
