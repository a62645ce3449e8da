// against: path
// why: the minimum in float: wrong above 2^24
// grid: ceil_div(cols, 256)
// block: 256
__global__ void path(const int *__restrict__ cost, const int *__restrict__ from, int *__restrict__ to, int cols)
{
    __shared__ int s[258];
    const int x0 = blockIdx.x * 256;
    for (int k = threadIdx.x; k < 258; k += 256) s[k] = from[min(max(x0 + k - 1, 0), cols - 1)];
    __syncthreads();
    const int t = threadIdx.x, i = x0 + t;
    if (i < cols) to[i] = (int)fminf((float)s[t], fminf((float)s[t + 1], (float)s[t + 2])) + __ldg(cost + i);
}
