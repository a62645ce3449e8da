// C = A B, an element a thread.
//
// /// fsr
// entry = "gemm_1024"
// [sizes]
// M = {min = 1, max = 8192, timed = 1024}
// N = {min = 1, max = 8192, timed = 1024}
// K = {min = 1, max = 8192, timed = 1024}
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
__global__ void gemm_1024(const float *A, const float *B, float *C, int M, int N, int K) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || col >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
  C[row * N + col] = sum;
}
