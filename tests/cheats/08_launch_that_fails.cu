// cheat: 8
// attacks: softmax
// how: asks for more shared memory than any device has: the launch fails and old memory is compared
// refused by: device: a launch that is refused is a fault of the candidate
// shared: 1000000000

extern __shared__ float space[];
__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    space[threadIdx.x] = 0.0f;
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
}
