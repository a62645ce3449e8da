// honest: layer_norm
// how: a block a row, two sums through shared memory
// grid: rows
// block: 128

__device__ float sum_of_block(float v)
{
    __shared__ float part[128];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int o = 64; o > 0; o /= 2) {
        if (threadIdx.x < o) part[threadIdx.x] += part[threadIdx.x + o];
        __syncthreads();
    }
    float total = part[0];
    __syncthreads();
    return total;
}

__global__ void __launch_bounds__(128) layer_norm(const float *__restrict__ x, const float *gamma, const float *beta,
                                                  float *__restrict__ y, int rows, int cols, float eps)
{
    const float *in = x + (size_t)blockIdx.x * cols;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 128) sum += in[j];
    float mean = sum_of_block(sum) / cols;
    float squares = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 128) squares += (in[j] - mean) * (in[j] - mean);
    float rstd = rsqrtf(sum_of_block(squares) / cols + eps);
    for (int j = threadIdx.x; j < cols; j += 128) {
        y[(size_t)blockIdx.x * cols + j] = (in[j] - mean) * rstd * gamma[j] + beta[j];
    }
}
