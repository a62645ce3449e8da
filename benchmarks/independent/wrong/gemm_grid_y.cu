// against: gemm
// why: grid.y capped at 64 tiles without a loop
// grid: ceil_div(N, 32) | min(ceil_div(M, 32), 64)
// block: 32 8
__global__ void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta, float *C)
{
    __shared__ float a[32][33], b[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y, row0 = blockIdx.y * 32, col = blockIdx.x * 32 + tx;
    float sum[4] = {};
    for (int k0 = 0; k0 < K; k0 += 32) {
        for (int i = ty; i < 32; i += 8) {
            a[i][tx] = row0 + i < M && k0 + tx < K ? A[(size_t)(row0 + i) * K + k0 + tx] : 0.0f;
            b[i][tx] = k0 + i < K && col < N ? B[(size_t)(k0 + i) * N + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++)
            for (int i = 0; i < 4; i++) sum[i] = fmaf(a[ty + 8 * i][k], b[k][tx], sum[i]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        const int row = row0 + ty + 8 * i;
        if (row < M && col < N) C[(size_t)row * N + col] = alpha * sum[i] + beta * C[(size_t)row * N + col];
    }
}
