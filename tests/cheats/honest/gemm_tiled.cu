// honest: gemm
// how: shared-memory tiles with guards
// entry: gemm<16>

template <int T>
__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[T][T + 1], b[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float acc = 0.0f;
    for (int k = 0; k < K; k += T) {
        a[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? A[row * K + k + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = col < N && k + threadIdx.y < K ? B[(k + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < T; j++) acc += a[threadIdx.y][j] * b[j][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
