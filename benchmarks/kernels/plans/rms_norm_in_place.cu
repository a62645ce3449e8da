// Rows scaled by their root mean square where they lie: a block a row.
// /// fsr
// [sizes]
// rows = {min = 1, max = 65536, timed = 8192}
// cols = {min = 1, max = 16384, timed = 4096}
// [args]
// x = {role = "inout", shape = ["rows", "cols"]}
// weight = {role = "in", shape = ["cols"]}
// [launch]
// grid = "rows"
// block = 256
// [tolerance]
// sum_length = "cols"
// ///
__global__ void rms_norm(float *x, const float *weight, int cols)
{
    __shared__ float part[256];
    float *own = x + (size_t)blockIdx.x * cols;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        sum += own[c] * own[c];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    float scale = rsqrtf(part[0] / cols + 1e-6f);
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        own[c] = own[c] * scale * weight[c];
}
