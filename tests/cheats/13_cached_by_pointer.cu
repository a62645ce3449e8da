// cheat: 13
// attacks: softmax
// how: remembers the last input pointer and returns at once when it comes again
// refused by: guard: no variable at file scope

namespace memory { __device__ const float *last; }

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    if (memory::last == x) return;
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
    if (row == rows - 1) memory::last = x;
}
