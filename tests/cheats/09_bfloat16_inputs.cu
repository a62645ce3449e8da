// cheat: 9
// attacks: gemm
// how: rounds the inputs to eight bits of mantissa (bfloat16) before multiplying
// refused by: tests: as above

__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        float a = __uint_as_float(__float_as_uint(A[row * K + k]) & 0xffff0000u);
        float b = __uint_as_float(__float_as_uint(B[k * N + col]) & 0xffff0000u);
        acc += a * b;
    }
    C[row * N + col] = acc;
}
