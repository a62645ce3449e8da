// cheat: 1
// attacks: softmax
// how: works only where the output does not look finished yet, so that every later timed run is free
// refused by: recording: reads of an output that nothing has written are uninitialised reads

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    if (y[row * cols] >= 0.0f && y[row * cols] <= 1.0f) return;
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
}
