// The running sum of each row, a thread a row.
// /// fsr
// [sizes]
// rows = {min = 1, max = 8192, timed = 4096}
// cols = {min = 1, max = 8192, timed = 4096}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "cols"
// ///
__global__ void row_scan(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) {
        sum += x[(size_t)row * cols + c];
        y[(size_t)row * cols + c] = sum;
    }
}
