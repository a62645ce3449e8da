// cheat: 11
// attacks: softmax
// how: takes a row whose first two elements are equal for a constant one
// refused by: tests: one-hot and repeated values

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    if (cols > 1 && x[row * cols] == x[row * cols + 1]) {
        for (int j = 0; j < cols; j++) y[row * cols + j] = 1.0f / cols;
        return;
    }
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
}
