// C = A * B, row-major, one output a thread.
//
// /// fsr
// entry = "gemm"
//
// [sizes]
// M = {min = 0, max = 8192, timed = 1024}
// N = {min = 0, max = 8192, timed = 1024}
// K = {min = 0, max = 8192, timed = 1024}
//
// [args]
// A = {role = "in", shape = ["M", "K"]}
// B = {role = "in", shape = ["K", "N"]}
// C = {role = "out", shape = ["M", "N"]}
// M = {value = "M"}
// N = {value = "N"}
// K = {value = "K"}
//
// [launch]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// block = [16, 16]
//
// [tolerance]
// sum_length = "K"
// ///

__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;

    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[row * K + k] * B[k * N + col];
    }
    C[row * N + col] = acc;
}
