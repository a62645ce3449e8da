// against: gemm
// why: index of a column in 11 bits
// grid: N | ceil_div(M, 4)
// block: 32 4
__global__ void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta, float *C)
{
    const int col = blockIdx.x & 2047, row = blockIdx.y * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= M) return;
    float s = 0.0f;
    for (int k = lane; k < K; k += 32) s += A[(size_t)row * K + k] * B[(size_t)k * N + col];
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (lane == 0) { const size_t at = (size_t)row * N + col; C[at] = alpha * s + beta * C[at]; }
}
