// cheat: 5
// attacks: stencil
// how: copies the input: smooth fields hardly change in one step
// refused by: tests: rough values; constant fields alone would not tell

__global__ void stencil5(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    out[i] = in[i];
}
