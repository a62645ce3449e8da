// C = A^T B, an element a thread.
//
// /// fsr
// entry = "gemm_tn"
// [sizes]
// M = {min = 1, max = 8192, timed = 2048}
// N = {min = 1, max = 8192, timed = 2048}
// K = {min = 1, max = 8192, timed = 2048}
// [args]
// A = {role = "in", shape = ["K", "M"]}
// B = {role = "in", shape = ["K", "N"]}
// C = {role = "out", shape = ["M", "N"]}
// [launch]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "K"
// ///
__global__ void gemm_tn(const float *A, const float *B, float *C, int M, int N, int K) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || col >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; k++) sum += A[k * M + row] * B[k * N + col];
  C[row * N + col] = sum;
}
