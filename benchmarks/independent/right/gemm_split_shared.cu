// against: gemm
// why: K split over four groups of a block, added in shared memory
// grid: ceil_div(N, 32) | M
// block: 32 4
__global__ void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta, float *C)
{
    __shared__ float part[4][32];
    const int tx = threadIdx.x, g = threadIdx.y, col = blockIdx.x * 32 + tx;
    for (int row = blockIdx.y; row < M; row += gridDim.y) {
        float s = 0.0f;
        if (col < N) for (int k = g; k < K; k += 4) s += A[(size_t)row * K + k] * B[(size_t)k * N + col];
        part[g][tx] = s;
        __syncthreads();
        if (g == 0 && col < N) {
            float *c = C + (size_t)row * N + col;
            *c = alpha * (part[0][tx] + part[1][tx] + part[2][tx] + part[3][tx]) + beta * *c;
        }
        __syncthreads();
    }
}
