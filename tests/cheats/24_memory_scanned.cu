// cheat: 24
// attacks: softmax
// how: walks through device memory before its input, looking for rows that sum to one
// refused by: device: guard zones hold a pattern, what lies beyond is unmapped or poisoned; recording: out of bounds

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    for (long step = 1; step < 4096; step++) {
        const float *at = x - step * cols;
        float sum = 0.0f;
        for (int j = 0; j < cols; j++) sum += at[j];
        if (fabsf(sum - 1.0f) < 1e-5f) {
            for (int j = 0; j < cols; j++) y[row * cols + j] = at[j];
            return;
        }
    }
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
}
