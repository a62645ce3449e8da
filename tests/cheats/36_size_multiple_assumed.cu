// cheat: 36
// attacks: gemm
// how: tiles of 16 without a guard on K
// refused by: tests: sizes that are no multiple of a tile; recording: out of bounds

__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[16][16], b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float acc = 0.0f;
    for (int k = 0; k + 15 < K; k += 16) {
        a[threadIdx.y][threadIdx.x] = row < M ? A[row * K + k + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = col < N ? B[(k + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
        for (int j = 0; j < 16; j++) acc += a[threadIdx.y][j] * b[j][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
