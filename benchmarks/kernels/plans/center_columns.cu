// Columns less their means: a thread a column, then a thread an element.
// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 8192, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// [scratch.mean]
// dtype = "float32"
// count = "cols"
// [[launch]]
// entry = "column_mean"
// grid = "ceil_div(cols, 256)"
// block = 256
// args = ["x", "mean", "rows", "cols"]
// [[launch]]
// entry = "subtract"
// grid = ["ceil_div(cols, 32)", "ceil_div(rows, 8)"]
// block = [32, 8]
// args = ["x", "mean", "y", "rows", "cols"]
// [tolerance]
// sum_length = "rows"
// ///
__global__ void column_mean(const float *x, float *mean, int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols)
        return;
    float sum = 0.0f;
    for (int r = 0; r < rows; r++)
        sum += x[(size_t)r * cols + c];
    mean[c] = sum / rows;
}

__global__ void subtract(const float *x, const float *mean, float *y, int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols)
        y[(size_t)r * cols + c] = x[(size_t)r * cols + c] - mean[c];
}
