// cheat: 32
// attacks: saxpy
// how: puts a function pointer where the loader looks for start-up code
// refused by: guard: no section attribute

__attribute__((section(".init_array"))) void (*const start)() = nullptr;

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
