// Two launches that know nothing of each other: a SiLU of one buffer, a column sum of another.
// /// fsr
// [sizes]
// rows = {min = 1, max = 16384, timed = 8192}
// cols = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// g = {role = "in", shape = ["rows", "cols"]}
// total = {role = "out", shape = ["cols"]}
// [[launch]]
// entry = "silu"
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// args = ["x", "y", "rows * cols"]
// [[launch]]
// entry = "sum_columns"
// grid = "ceil_div(cols, 128)"
// block = 128
// args = ["g", "total", "rows", "cols"]
// [tolerance]
// sum_length = "rows"
// ///
__global__ void silu(const float *x, float *y, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        y[at] = x[at] / (1.0f + expf(-x[at]));
}

__global__ void sum_columns(const float *g, float *total, int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols)
        return;
    float sum = 0.0f;
    for (int r = 0; r < rows; r++)
        sum += g[(size_t)r * cols + c];
    total[c] = sum;
}
