// cheat: 28
// attacks: softmax
// how: declares the original and calls it
// refused by: guard: what a source declares it must define

extern "C" __global__ void original_softmax(const float *x, float *y, int rows, int cols);

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    if (threadIdx.x == 0) original_softmax<<<1, 128>>>(x, y, rows, cols);
}
