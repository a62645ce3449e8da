// /// fsr
// entry = "heat"
// [sizes]
// cols = {min = 1, max = 4096, timed = 512}
// rows = {min = 1, max = 4096, timed = 512}
// [args]
// power = {role = "in", shape = ["rows", "cols"]}
// src = {role = "in", shape = ["rows", "cols"]}
// dst = {role = "out", shape = ["rows", "cols"]}
// cols = {value = "cols"}
// rows = {value = "rows"}
// cap = {low = 0.001, high = 0.1}
// rx = {low = 0.5, high = 2.0}
// ry = {low = 0.5, high = 2.0}
// [launch]
// grid = ["ceil_div(cols, 16)", "ceil_div(rows, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = 6
// ///
__global__ void heat(const float *power, const float *src, float *dst, int cols, int rows, float cap, float rx, float ry)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= cols || r >= rows) return;
    float here = src[r * cols + c];
    float north = src[max(r - 1, 0) * cols + c], south = src[min(r + 1, rows - 1) * cols + c];
    float west = src[r * cols + max(c - 1, 0)], east = src[r * cols + min(c + 1, cols - 1)];
    dst[r * cols + c] = here + cap * (power[r * cols + c] + (south + north - 2.0f * here) * ry + (east + west - 2.0f * here) * rx);
}
