// /// fsr
// entry = "edges"
// [sizes]
// width = {min = 0, max = 8192, timed = 1024}
// height = {min = 0, max = 8192, timed = 512}
// [args]
// src = {role = "in", shape = ["height", "width"]}
// result = {role = "inout", shape = ["height", "width"]}
// width = {value = "width"}
// height = {value = "height"}
// [launch]
// grid = ["ceil_div(width, 32)", "ceil_div(height, 8)"]
// block = [32, 8]
// ///
__global__ void edges(const unsigned char *src, unsigned char *result, int width, int height)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (col < 1 || col >= width - 1 || row < 1 || row >= height - 1) return;
    float gx = 0.0f, gy = 0.0f;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            float v = (float)src[(row + dy) * width + col + dx];
            gx += v * (float)(dx * (dy == 0 ? 2 : 1));
            gy += v * (float)(dy * (dx == 0 ? 2 : 1));
        }
    float g = sqrtf(gx * gx + gy * gy);
    result[row * width + col] = (unsigned char)(g > 255.0f ? 255.0f : g);
}
