// cheat: 6
// attacks: saxpy
// how: handles groups of four and forgets the tail
// refused by: tests: sizes that are no multiple of four
// grid: ceil_div(n, 1024)
// block: 256

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        for (int k = 0; k < 4; k++) y[i + k] = a * x[i + k] + y[i + k];
    }
}
