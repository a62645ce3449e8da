// /// fsr
// entry = "sgemm"
// [sizes]
// M = {min = 0, max = 4096, timed = 512}
// N = {min = 0, max = 4096, timed = 512}
// K = {min = 0, max = 4096, timed = 512}
// [args]
// M = {value = "M"}
// N = {value = "N"}
// K = {value = "K"}
// alpha = {low = -2, high = 2}
// A = {role = "in", shape = ["M", "K"]}
// B = {role = "in", shape = ["K", "N"]}
// beta = {low = -2, high = 2}
// C = {role = "inout", shape = ["M", "N"]}
// [launch]
// grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
// block = [32, 8]
// [tolerance]
// sum_length = "K"
// ///
__global__ void sgemm(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + beta * C[row * N + col];
}
