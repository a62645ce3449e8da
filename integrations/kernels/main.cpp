// The program of the examples: scales an array and says whether the result is right.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

extern "C" void launch_scale(const float *x, float *y, int n);

int main()
{
    const int n = 1000;
    std::vector<float> host(n, 2.0f);
    float *x = nullptr, *y = nullptr;
    if (cudaMalloc(&x, n * sizeof(float)) != cudaSuccess || cudaMalloc(&y, n * sizeof(float)) != cudaSuccess) {
        std::printf("no GPU: nothing was run\n");
        return 0;
    }
    cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    launch_scale(x, y, n);
    cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (float value : host)
        if (value != 6.0f) return std::printf("wrong: %f\n", value), 1;
    std::printf("right\n");
    return 0;
}
