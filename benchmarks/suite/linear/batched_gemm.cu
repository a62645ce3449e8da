// A product for every batch, an element a thread.
//
// /// fsr
// entry = "batched_gemm"
// [sizes]
// batch = {min = 1, max = 256, timed = 64}
// M = {min = 1, max = 2048, timed = 512}
// N = {min = 1, max = 2048, timed = 512}
// K = {min = 1, max = 2048, timed = 512}
// [args]
// A = {role = "in", shape = ["batch", "M", "K"]}
// B = {role = "in", shape = ["batch", "K", "N"]}
// C = {role = "out", shape = ["batch", "M", "N"]}
// [launch]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)", "batch"]
// block = [16, 16]
// [tolerance]
// sum_length = "K"
// ///
__global__ void batched_gemm(const float *A, const float *B, float *C, int M, int N, int K) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  const float *a = A + (size_t)blockIdx.z * M * K, *b = B + (size_t)blockIdx.z * K * N;
  if (row >= M || col >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += a[row * K + k] * b[k * N + col];
  C[((size_t)blockIdx.z * M + row) * N + col] = sum;
}
