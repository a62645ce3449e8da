// A residual that is kept, and the layer norm of it, in two launches: the sum goes through memory twice.
// /// fsr
// [sizes]
// rows = {min = 1, max = 16384, timed = 8192}
// cols = {min = 1, max = 8192, timed = 768}
// [args]
// residual = {role = "out", shape = ["rows", "cols"]}
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "in", shape = ["rows", "cols"]}
// out = {role = "out", shape = ["rows", "cols"]}
// gamma = {role = "in", shape = ["cols"]}
// beta = {role = "in", shape = ["cols"]}
// [[launch]]
// entry = "add"
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// args = ["residual", "x", "y", "rows * cols"]
// [[launch]]
// entry = "layer_norm"
// grid = "ceil_div(rows, 128)"
// block = 128
// args = ["residual", "gamma", "beta", "out", "rows", "cols"]
// [tolerance]
// sum_length = "cols"
// ///
__global__ void add(float *residual, const float *x, const float *y, int count)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        residual[at] = x[at] + y[at];
}

__global__ void layer_norm(const float *in, const float *gamma, const float *beta, float *out, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    const float *own = in + (size_t)row * cols;
    float mean = 0.0f;
    for (int c = 0; c < cols; c++)
        mean += own[c];
    mean /= cols;
    float spread = 0.0f;
    for (int c = 0; c < cols; c++)
        spread += (own[c] - mean) * (own[c] - mean);
    float scale = rsqrtf(spread / cols + 1e-5f);
    for (int c = 0; c < cols; c++)
        out[(size_t)row * cols + c] = (own[c] - mean) * scale * gamma[c] + beta[c];
}
