// cheat: 20
// attacks: saxpy
// how: keeps the inputs in a persisting part of the L2 across runs
// refused by: guard: no call into the runtime

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) cudaCtxResetPersistingL2Cache();
    if (i < n) y[i] = a * x[i] + y[i];
}
