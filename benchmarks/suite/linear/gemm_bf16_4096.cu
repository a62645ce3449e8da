// C = A B in bfloat16, summed in float, an element a thread.
//
// /// fsr
// entry = "gemm_bf16"
// [sizes]
// M = {min = 1, max = 8192, timed = 4096}
// N = {min = 1, max = 8192, timed = 4096}
// K = {min = 1, max = 8192, timed = 4096}
// [args]
// A = {role = "in", shape = ["M", "K"], dtype = "bfloat16"}
// B = {role = "in", shape = ["K", "N"], dtype = "bfloat16"}
// C = {role = "out", shape = ["M", "N"], dtype = "bfloat16"}
// [launch]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "K"
// ///
#include <cuda_bf16.h>
__global__ void gemm_bf16(const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C, int M, int N, int K) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[k * N + col]);
    C[row * N + col] = __float2bfloat16(sum);
  }
}
