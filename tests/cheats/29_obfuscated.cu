// cheat: 29
// attacks: saxpy
// how: builds the name of a forbidden function out of two halves
// refused by: guard: no token pasting

#define JOIN(a, b) a##b

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] + 0.0f * JOIN(clo, ck64)();
}
