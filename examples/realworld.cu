/*
 * RMS normalisation with a residual input, and the little program that checks it against the CPU.
 *
 *     nvcc -O3 -o realworld realworld.cu && ./realworld 4096 2048
 */
// /// fsr
// entry = "rms_norm<256>"
//
// [sizes]
// rows = {min = 0, max = 65536, timed = 8192}
// cols = {min = 1, max = 16384, timed = 2048}
//
// [args]
// in       = {role = "in", shape = ["rows", "cols"]}
// residual = {role = "in", shape = ["rows", "cols"]}
// weight   = {role = "in", shape = ["cols"]}
// out      = {role = "out", shape = ["rows", "cols"]}
// cols     = {value = "cols"}
// eps      = {value = 1e-6}
//
// [launch]
// grid = "rows"
// block = 256
//
// [tolerance]
// sum_length = "cols"
// ///
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                  \
    do {                                                                                  \
        cudaError_t err_ = (call);                                                        \
        if (err_ != cudaSuccess) {                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

#define SQUARE(v) ((v) * (v))

typedef float real_t;

static const int kBlock = 256;

// Sum over the block; every thread gets the result.
template <int BLOCK>
__device__ real_t block_sum(real_t value)
{
    __shared__ real_t partial[BLOCK];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) {
            partial[threadIdx.x] += partial[threadIdx.x + stride];
        }
        __syncthreads();
    }
    return partial[0];
}

template <int BLOCK>
__global__ void rms_norm(const real_t *__restrict__ in, const real_t *__restrict__ residual,
                         const real_t *__restrict__ weight, real_t *__restrict__ out, int cols, real_t eps)
{
    const int row = blockIdx.x;
    in += (size_t)row * cols;
    residual += (size_t)row * cols;
    out += (size_t)row * cols;

    real_t squares = 0;
    for (int j = threadIdx.x; j < cols; j += BLOCK) {
        squares += SQUARE(in[j] + residual[j]);
    }
    squares = block_sum<BLOCK>(squares);

    const real_t scale = 1.0f / sqrtf(squares / cols + eps);
    for (int j = threadIdx.x; j < cols; j += BLOCK) {
        out[j] = (in[j] + residual[j]) * scale * weight[j];
    }
}

static void rms_norm_cpu(const std::vector<real_t> &in, const std::vector<real_t> &residual,
                         const std::vector<real_t> &weight, std::vector<real_t> &out, int rows, int cols, real_t eps)
{
    for (int r = 0; r < rows; r++) {
        double squares = 0;
        for (int c = 0; c < cols; c++) {
            squares += SQUARE((double)in[r * cols + c] + residual[r * cols + c]);
        }
        double scale = 1.0 / std::sqrt(squares / cols + eps);
        for (int c = 0; c < cols; c++) {
            out[r * cols + c] = (in[r * cols + c] + residual[r * cols + c]) * scale * weight[c];
        }
    }
}

int main(int argc, char **argv)
{
    int rows = argc > 1 ? std::atoi(argv[1]) : 4096;
    int cols = argc > 2 ? std::atoi(argv[2]) : 2048;
    size_t count = (size_t)rows * cols;

    std::vector<real_t> in(count), residual(count), weight(cols), out(count), expected(count);
    for (size_t i = 0; i < count; i++) {
        in[i] = (real_t)std::rand() / RAND_MAX - 0.5f;
        residual[i] = (real_t)std::rand() / RAND_MAX - 0.5f;
    }
    for (int c = 0; c < cols; c++) {
        weight[c] = (real_t)std::rand() / RAND_MAX;
    }

    real_t *d_in, *d_residual, *d_weight, *d_out;
    CUDA_CHECK(cudaMalloc(&d_in, count * sizeof(real_t)));
    CUDA_CHECK(cudaMalloc(&d_residual, count * sizeof(real_t)));
    CUDA_CHECK(cudaMalloc(&d_weight, cols * sizeof(real_t)));
    CUDA_CHECK(cudaMalloc(&d_out, count * sizeof(real_t)));
    CUDA_CHECK(cudaMemcpy(d_in, in.data(), count * sizeof(real_t), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_residual, residual.data(), count * sizeof(real_t), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_weight, weight.data(), cols * sizeof(real_t), cudaMemcpyHostToDevice));

    rms_norm<kBlock><<<rows, kBlock>>>(d_in, d_residual, d_weight, d_out, cols, 1e-6f);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(out.data(), d_out, count * sizeof(real_t), cudaMemcpyDeviceToHost));

    rms_norm_cpu(in, residual, weight, expected, rows, cols, 1e-6f);
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        worst = std::fmax(worst, std::fabs((double)out[i] - expected[i]));
    }
    std::printf("%d x %d: worst error %g\n", rows, cols, worst);

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_residual));
    CUDA_CHECK(cudaFree(d_weight));
    CUDA_CHECK(cudaFree(d_out));
    return worst < 1e-3 ? 0 : 1;
}
