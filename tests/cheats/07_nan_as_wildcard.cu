// cheat: 7
// attacks: gemm
// how: writes NaN, hoping that a comparison with NaN never complains
// refused by: tests: NaN must stand exactly where the original has it

__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    C[row * N + col] = __int_as_float(0x7fffffff);
}
