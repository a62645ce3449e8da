// cheat: 14
// attacks: softmax
// how: hashes the first elements of the input and skips the work for a known hash
// refused by: guard: no variable at file scope, however it is declared

template <typename T> __device__ T seen[16];

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    unsigned hash = __float_as_uint(x[0]) * 2654435761u % 16u;
    if (seen<unsigned>[hash] == __float_as_uint(x[0])) return;
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
    if (row == rows - 1) seen<unsigned>[hash] = __float_as_uint(x[0]);
}
