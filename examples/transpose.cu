// Out-of-place matrix transpose, one element a thread.
//
// /// fsr
// entry = "transpose"
//
// [sizes]
// rows = {min = 0, max = 16384, timed = 4096}
// cols = {min = 0, max = 16384, timed = 4096}
//
// [args]
// in   = {role = "in", shape = ["rows", "cols"]}
// out  = {role = "out", shape = ["cols", "rows"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
//
// [launch]
// grid = ["ceil_div(cols, 16)", "ceil_div(rows, 16)"]
// block = [16, 16]
//
// [tolerance]
// exact = true
// ///

__global__ void transpose(const float *in, float *out, int rows, int cols)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && col < cols) {
        out[col * rows + row] = in[row * cols + col];
    }
}
