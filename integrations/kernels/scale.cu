// /// fsr
// entry = "scale"
//
// [sizes]
// n = {min = 0, max = 16777216, timed = 4194304}
//
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
//
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
#include "factor.cuh"

__global__ void scale(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * x[i];
}

extern "C" void launch_scale(const float *x, float *y, int n)
{
    scale<<<(n + 255) / 256, 256>>>(x, y, n);
}
