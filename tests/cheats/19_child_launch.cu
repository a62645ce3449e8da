// cheat: 19
// attacks: saxpy
// how: starts a child grid that outlives the event that stops the clock
// refused by: guard: no launch from device code

__global__ void child(const float *x, float *y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) child<<<(n + 255) / 256, 256>>>(x, y, a, n);
}
