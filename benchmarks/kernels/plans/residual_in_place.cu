// x += y, element after element of a row by one thread.
// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 16384}
// cols = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "inout", shape = ["rows", "cols"]}
// y = {role = "in", shape = ["rows", "cols"]}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// ///
__global__ void residual(float *x, const float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    for (int c = 0; c < cols; c++)
        x[row * cols + c] += y[row * cols + c];
}
