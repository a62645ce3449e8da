// cheat: 22
// attacks: saxpy
// how: returns at once at one size, so that a mean over sizes collapses
// refused by: tests: a size that the source names is a size that is tested

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n == 1000) return;
    if (i < n) y[i] = a * x[i] + y[i];
}
