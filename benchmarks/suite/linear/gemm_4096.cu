// C = A B as in the chapter on shared memory: tiles of 16 x 16, an element a thread.
//
// /// fsr
// entry = "gemm_4096"
// [sizes]
// M = {min = 1, max = 8192, timed = 4096}
// N = {min = 1, max = 8192, timed = 4096}
// K = {min = 1, max = 8192, timed = 4096}
// [args]
// A = {role = "in", shape = ["M", "K"]}
// B = {role = "in", shape = ["K", "N"]}
// C = {role = "out", shape = ["M", "N"]}
// [launch]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "K"
// ///
__global__ void gemm_4096(const float *A, const float *B, float *C, int M, int N, int K) {
  __shared__ float As[16][16];
  __shared__ float Bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int step = 0; step < (K + 15) / 16; step++) {
    As[ty][tx] = row < M && step * 16 + tx < K ? A[row * K + step * 16 + tx] : 0.0f;
    Bs[ty][tx] = step * 16 + ty < K && col < N ? B[(step * 16 + ty) * N + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}
