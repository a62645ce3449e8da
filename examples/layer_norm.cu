// Layer normalisation over the last dimension, with scale and shift. Each thread does a whole row.
//
// /// fsr
// entry = "layer_norm"
//
// [sizes]
// rows = {min = 0, max = 65536, timed = 8192}
// cols = {min = 1, max = 8192, timed = 1024}
//
// [args]
// x     = {role = "in", shape = ["rows", "cols"]}
// gamma = {role = "in", shape = ["cols"]}
// beta  = {role = "in", shape = ["cols"]}
// y     = {role = "out", shape = ["rows", "cols"]}
// rows  = {value = "rows"}
// cols  = {value = "cols"}
// eps   = {value = 1e-5}
//
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
//
// [tolerance]
// sum_length = "cols"
// ///

__global__ void layer_norm(const float *x, const float *gamma, const float *beta, float *y,
                           int rows, int cols, float eps)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;

    float mean = 0.0f;
    for (int j = 0; j < cols; j++) {
        mean += x[row * cols + j];
    }
    mean /= cols;

    float var = 0.0f;
    for (int j = 0; j < cols; j++) {
        float d = x[row * cols + j] - mean;
        var += d * d;
    }
    var /= cols;

    float rstd = rsqrtf(var + eps);
    for (int j = 0; j < cols; j++) {
        y[row * cols + j] = (x[row * cols + j] - mean) * rstd * gamma[j] + beta[j];
    }
}
