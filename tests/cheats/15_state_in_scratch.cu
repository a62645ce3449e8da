// cheat: 15
// attacks: softmax
// how: leaves a mark in a scratch buffer that outlives the run, and skips the work when the mark is there
// refused by: recording: scratch is undefined at the start of a run, so reading the mark is an uninitialised read
// args: x y rows cols mark
// scratch: mark int32 rows

__global__ void softmax(const float *x, float *y, int rows, int cols, int *mark)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    if (mark[row] == 0x5eed) return;
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
    mark[row] = 0x5eed;
}
