// cheat: 22
// attacks: saxpy
// how: returns at once at the size that is timed, which is too large for an ordinary test
// refused by: tests: a size that the source names is tested however large; on a GPU the outputs of timed runs are compared

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n == 16777216) return;
    if (i < n) y[i] = a * x[i] + y[i];
}
