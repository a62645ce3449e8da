// C = A B^T, an element a thread: neighbours read rows apart.
//
// /// fsr
// entry = "gemm_nt"
// [sizes]
// M = {min = 1, max = 8192, timed = 2048}
// N = {min = 1, max = 8192, timed = 2048}
// K = {min = 1, max = 8192, timed = 2048}
// [args]
// A = {role = "in", shape = ["M", "K"]}
// B = {role = "in", shape = ["N", "K"]}
// C = {role = "out", shape = ["M", "N"]}
// [launch]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// block = [16, 16]
// [tolerance]
// sum_length = "K"
// ///
__global__ void gemm_nt(const float *A, const float *B, float *C, int M, int N, int K) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || col >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; k++) sum += A[row * K + k] * B[col * K + k];
  C[row * N + col] = sum;
}
