// C = A B with what is tuned as macros: the block, outputs of a thread in both directions (TM, TN), depth of a tile (TK).
#define BM (block_size_y * TM)
#define BN (block_size_x * TN)
#define THREADS (block_size_x * block_size_y)
__global__ void gemm_tuned(const float *A, const float *B, float *C, int M, int N, int K) {
  __shared__ float As[TK][BM + 1];
  __shared__ float Bs[TK][BN];
  const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * block_size_x + tx;
  const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  float sums[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) sums[i][j] = 0.0f;
  for (int k0 = 0; k0 < K; k0 += TK) {
    for (int e = thread; e < BM * TK; e += THREADS) {
      int r = row0 + e / TK, k = k0 + e % TK;
      As[e % TK][e / TK] = r < M && k < K ? A[(size_t)r * K + k] : 0.0f;
    }
    for (int e = thread; e < TK * BN; e += THREADS) {
      int k = k0 + e / BN, c = col0 + e % BN;
      Bs[e / BN][e % BN] = k < K && c < N ? B[(size_t)k * N + c] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TK; k++) {
      float a[TM], b[TN];
#pragma unroll
      for (int i = 0; i < TM; i++) a[i] = As[k][ty + i * block_size_y];
#pragma unroll
      for (int j = 0; j < TN; j++) b[j] = Bs[k][tx + j * block_size_x];
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < TM; i++) {
    int r = row0 + ty + i * block_size_y;
#pragma unroll
    for (int j = 0; j < TN; j++) {
      int c = col0 + tx + j * block_size_x;
      if (r < M && c < N) C[(size_t)r * N + c] = sums[i][j];
    }
  }
}
