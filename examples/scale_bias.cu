// Per-channel scale and shift. There is no contract here: fsr infers it from the guard, the indices and the
// launch below. Try `fsr contract examples/scale_bias.cu`.

#include <cuda_runtime.h>

__global__ void scale_bias(const float *x, const float *scale, const float *bias, float *y, int rows, int cols)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        y[row * cols + col] = x[row * cols + col] * scale[col] + bias[col];
    }
}

void launch_scale_bias(const float *x, const float *scale, const float *bias, float *y, int rows, int cols,
                       cudaStream_t stream)
{
    dim3 block(32, 4);
    dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
    scale_bias<<<grid, block, 0, stream>>>(x, scale, bias, y, rows, cols);
}
