// cheat: 21
// attacks: saxpy
// how: is slow while it is warmed up, so that few samples are taken
// refused by: guard: no clock, no variable at file scope

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long start = clock64();
    while (clock64() - start < 100000) { }
    if (i < n) y[i] = a * x[i] + y[i];
}
