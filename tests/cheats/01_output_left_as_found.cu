// cheat: 1
// attacks: softmax
// how: does nothing: the output buffer may still hold the answer of an earlier run
// refused by: tests: outputs are poisoned with a NaN pattern of their own each run

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
}
