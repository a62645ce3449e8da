// cheat: 15
// attacks: softmax
// how: a static flag inside the kernel: later launches do nothing
// refused by: guard: no static variable

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    static __device__ int done;
    if (done > rows) return;
    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) biggest = fmaxf(biggest, x[row * cols + j]);
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += expf(x[row * cols + j] - biggest);
    for (int j = 0; j < cols; j++) y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
    atomicAdd(&done, 1);
}
