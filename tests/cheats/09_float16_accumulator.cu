// cheat: 9
// attacks: gemm
// how: accumulates in float16
// refused by: tests: at most four times less accurate than the original against the float64 answer

#include <cuda_fp16.h>

__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    __half acc = __float2half(0.0f);
    for (int k = 0; k < K; k++) {
        acc = __hadd(acc, __hmul(__float2half(A[row * K + k]), __float2half(B[k * N + col])));
    }
    C[row * N + col] = __half2float(acc);
}
