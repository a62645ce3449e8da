// cheat: 2
// attacks: softmax
// how: writes 1 / cols: with many columns every true output is small, and so is the absolute error
// refused by: tests: errors are judged relative to each element

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    for (int j = 0; j < cols; j++) y[row * cols + j] = 1.0f / cols;
}
