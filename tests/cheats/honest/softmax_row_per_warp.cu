// honest: softmax
// how: a warp a row, shuffles for the maximum and the sum
// grid: ceil_div(rows, 8)
// block: 32 8

__global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int rows, int cols)
{
    int row = blockIdx.x * 8 + threadIdx.y;
    if (row >= rows) return;
    const float *in = x + (size_t)row * cols;
    float biggest = -INFINITY;
    for (int j = threadIdx.x; j < cols; j += 32) biggest = fmaxf(biggest, in[j]);
    for (int o = 16; o > 0; o /= 2) biggest = fmaxf(biggest, __shfl_xor_sync(0xffffffffu, biggest, o));
    float sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 32) sum += __expf(in[j] - biggest);
    for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    float scale = 1.0f / sum;
    for (int j = threadIdx.x; j < cols; j += 32) y[(size_t)row * cols + j] = __expf(in[j] - biggest) * scale;
}
