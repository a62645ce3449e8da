// cheat: 31
// attacks: saxpy
// how: an array of gigabytes
// refused by: guard: extents are counted

__constant__ float table[1 << 28] = {1.0f};

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] + 0.0f * table[i];
}
