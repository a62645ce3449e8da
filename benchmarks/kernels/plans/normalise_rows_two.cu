// Rows divided by their Euclidean length: the lengths by a warp a row, then a thread an element, where they lie.
// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 8192, timed = 512}
// [args]
// x = {role = "inout", shape = ["rows", "cols"]}
// length = {role = "out", shape = ["rows"]}
// [[launch]]
// entry = "lengths"
// grid = "ceil_div(rows, 4)"
// block = 128
// args = ["x", "length", "rows", "cols"]
// [[launch]]
// entry = "divide"
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// args = ["x", "length", "rows * cols", "cols"]
// [tolerance]
// sum_length = "cols"
// ///
__global__ void lengths(float *x, float *length, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int c = threadIdx.x % 32; c < cols; c += 32)
        sum += x[row * cols + c] * x[row * cols + c];
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (threadIdx.x % 32 == 0)
        length[row] = sqrtf(sum);
}

__global__ void divide(float *x, const float *length, int count, int cols)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        x[at] = x[at] / (length[at / cols] + 1e-6f);
}
