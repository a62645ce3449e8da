// cheat: 30
// attacks: saxpy
// how: includes a file of the host; its text comes back in the compiler log
// refused by: guard: only headers of the device toolkit

#include "/etc/hostname"

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
