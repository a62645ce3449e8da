// against: path
// why: the right end reads one too far
// grid: ceil_div(cols, 256)
// block: 128
__global__ void path(const int *__restrict__ cost, const int *__restrict__ from, int *__restrict__ to, int cols)
{
    const int i = 2 * (blockIdx.x * 128 + threadIdx.x);
    if (i >= cols) return;
    const int l = from[i > 0 ? i - 1 : 0], a = from[i], b = i + 1 < cols ? from[i + 1] : a, r = i + 2 <= cols ? from[i + 2] : b, m = min(a, b);
    to[i] = min(l, m) + cost[i];
    if (i + 1 < cols) to[i + 1] = min(m, r) + cost[i + 1];
}
