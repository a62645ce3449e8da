// cheat: 4
// attacks: softmax
// how: overwrites the input with zeros, so that a reference computed afterwards gives 1 / cols as well
// refused by: device: inputs are checked unchanged after every run

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float *in = const_cast<float *>(x);
    for (int j = 0; j < cols; j++) {
        in[row * cols + j] = 0.0f;
        y[row * cols + j] = 1.0f / cols;
    }
}
