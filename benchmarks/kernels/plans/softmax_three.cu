// Softmax in three launches: the largest of a row, the sum of its powers, the quotients.
// /// fsr
// [sizes]
// rows = {min = 1, max = 16384, timed = 8192}
// cols = {min = 1, max = 65536, timed = 4096}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// [scratch.largest]
// dtype = "float32"
// count = "rows"
// [scratch.total]
// dtype = "float32"
// count = "rows"
// [[launch]]
// entry = "row_max"
// grid = "rows"
// block = 128
// args = ["x", "largest", "cols"]
// [[launch]]
// entry = "row_sum"
// grid = "rows"
// block = 128
// args = ["x", "largest", "total", "cols"]
// [[launch]]
// entry = "divide"
// grid = "ceil_div(rows * cols, 256)"
// block = 256
// args = ["x", "largest", "total", "y", "rows * cols", "cols"]
// [tolerance]
// sum_length = "cols"
// ///
__global__ void row_max(const float *x, float *largest, int cols)
{
    __shared__ float part[128];
    float best = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        best = fmaxf(best, x[(size_t)blockIdx.x * cols + c]);
    part[threadIdx.x] = best;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        largest[blockIdx.x] = part[0];
}

__global__ void row_sum(const float *x, const float *largest, float *total, int cols)
{
    __shared__ float part[128];
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        sum += expf(x[(size_t)blockIdx.x * cols + c] - largest[blockIdx.x]);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        total[blockIdx.x] = part[0];
}

__global__ void divide(const float *x, const float *largest, const float *total, float *y, int count, int cols)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        y[at] = expf(x[at] - largest[at / cols]) / total[at / cols];
}
