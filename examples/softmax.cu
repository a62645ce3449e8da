// Softmax over the rows of a matrix. Each thread does a whole row.
//
// /// fsr
// entry = "softmax"
//
// [sizes]
// rows = {min = 0, max = 65536, timed = 8192}
// cols = {min = 1, max = 8192, timed = 1024}
//
// [args]
// x    = {role = "in", shape = ["rows", "cols"]}
// y    = {role = "out", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
//
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
//
// [tolerance]
// sum_length = "cols"
// ///

__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;

    float biggest = x[row * cols];
    for (int j = 1; j < cols; j++) {
        biggest = fmaxf(biggest, x[row * cols + j]);
    }

    float sum = 0.0f;
    for (int j = 0; j < cols; j++) {
        sum += expf(x[row * cols + j] - biggest);
    }

    for (int j = 0; j < cols; j++) {
        y[row * cols + j] = expf(x[row * cols + j] - biggest) / sum;
    }
}
