// Softmax of rows where they lie, a thread a row.
// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 16384, timed = 1000}
// [args]
// x = {role = "inout", shape = ["rows", "cols"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void softmax(float *x, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float *own = x + (size_t)row * cols;
    float best = own[0];
    for (int c = 1; c < cols; c++)
        if (own[c] > best)
            best = own[c];
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) {
        own[c] = expf(own[c] - best);
        sum += own[c];
    }
    for (int c = 0; c < cols; c++)
        own[c] /= sum;
}
