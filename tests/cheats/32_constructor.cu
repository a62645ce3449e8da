// cheat: 32
// attacks: saxpy
// how: a constructor function runs on the host when the image is loaded
// refused by: guard: no such attribute

__attribute__((constructor)) static void at_load() { }

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
