// honest: stencil
// how: four rows a thread, values kept in registers
// grid: ceil_div(width, 16) | ceil_div(height, 64)
// block: 16 16

__global__ void stencil5(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int first = 4 * (blockIdx.y * blockDim.y + threadIdx.y);
    if (x >= width) return;
    for (int y = first; y < first + 4 && y < height; y++) {
        int i = y * width + x;
        bool border = x == 0 || y == 0 || x == width - 1 || y == height - 1;
        out[i] = border ? in[i] : 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
}
