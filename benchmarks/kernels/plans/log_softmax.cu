// The logarithms of a softmax of long rows, a thread a row.
// /// fsr
// [sizes]
// rows = {min = 1, max = 16384, timed = 4096}
// cols = {min = 1, max = 65536, timed = 32000}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void log_softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    const float *own = x + (size_t)row * cols;
    float best = -INFINITY;
    for (int c = 0; c < cols; c++)
        best = fmaxf(best, own[c]);
    float sum = 0.0f;
    for (int c = 0; c < cols; c++)
        sum += expf(own[c] - best);
    float shift = best + logf(sum);
    for (int c = 0; c < cols; c++)
        y[(size_t)row * cols + c] = own[c] - shift;
}
