// A transpose through a square of shared memory, EACH rows of it a thread; PAD keeps its columns out of one bank.
__global__ void transpose_tuned(const float *in, float *out, int rows, int cols) {
  __shared__ float tile[block_size_x][block_size_x + PAD];
  int c = blockIdx.x * block_size_x + threadIdx.x, r = blockIdx.y * block_size_x + threadIdx.y;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int step = i * block_size_y;
    if (r + step < rows && c < cols) tile[threadIdx.y + step][threadIdx.x] = in[(size_t)(r + step) * cols + c];
  }
  __syncthreads();
  c = blockIdx.y * block_size_x + threadIdx.x;
  r = blockIdx.x * block_size_x + threadIdx.y;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int step = i * block_size_y;
    if (r + step < cols && c < rows) out[(size_t)(r + step) * rows + c] = tile[threadIdx.x][threadIdx.y + step];
  }
}
