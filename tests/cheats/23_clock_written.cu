// cheat: 23
// attacks: saxpy
// how: reads the global timer through assembly and writes it
// refused by: guard: assembly may not read clocks

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (i < n) y[i] = a * x[i] + y[i] + 0.0f * now;
}
