// against: gemm
// why: 64x64 tile, 4x4 registers a thread, float accumulators in another order
// grid: ceil_div(N, 64) | ceil_div(M, 64)
// block: 256
template <int BM, int BN, int BK>
__device__ __forceinline__ void tile(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta, float *C)
{
    __shared__ float as[BK][BM + 1], bs[BK][BN];
    const int t = threadIdx.x, tr = t / 16 * 4, tc = t % 16 * 4, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int i = t; i < BM * BK; i += 256) {
            const int r = i / BK, k = i % BK;
            as[k][r] = row0 + r < M && k0 + k < K ? A[(size_t)(row0 + r) * K + k0 + k] : 0.0f;
        }
        for (int i = t; i < BK * BN; i += 256) {
            const int k = i / BN, c = i % BN;
            bs[k][c] = k0 + k < K && col0 + c < N ? B[(size_t)(k0 + k) * N + col0 + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < BK; k++) {
            float a[4], b[4];
            for (int i = 0; i < 4; i++) { a[i] = as[k][tr + i]; b[i] = bs[k][tc + i]; }
            for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = row0 + tr + i, c = col0 + tc + j;
            if (r < M && c < N) { float *to = C + (size_t)r * N + c; *to = fmaf(alpha, acc[i][j], beta * *to); }
        }
}
__global__ __launch_bounds__(256) void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta, float *C)
{
    tile<64, 64, 16>(M, N, K, alpha, A, B, beta, C);
}
