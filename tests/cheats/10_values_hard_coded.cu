// cheat: 10
// attacks: saxpy
// how: knows that values are around zero and clamps what it takes for impossible
// refused by: tests: families of large and wide values

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * fminf(fmaxf(x[i], -6.0f), 6.0f) + y[i];
}
