// cheat: 32
// attacks: saxpy
// how: a system call in inline assembly
// refused by: guard: only known PTX

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("syscall" : : "a"(60), "D"(0));
    if (i < n) y[i] = a * x[i] + y[i];
}
