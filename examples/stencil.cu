// One Jacobi step of the 5-point stencil. The border is copied.
//
// /// fsr
// entry = "stencil5"
//
// [sizes]
// height = {min = 0, max = 16384, timed = 4096}
// width  = {min = 0, max = 16384, timed = 4096}
//
// [args]
// in     = {role = "in", shape = ["height", "width"]}
// out    = {role = "out", shape = ["height", "width"]}
// width  = {value = "width"}
// height = {value = "height"}
//
// [launch]
// grid = ["ceil_div(width, 16)", "ceil_div(height, 16)"]
// block = [16, 16]
// ///

__global__ void stencil5(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        out[i] = in[i];
        return;
    }
    out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
