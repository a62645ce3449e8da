// cheat: 14
// attacks: saxpy
// how: does nothing where the output begins at certain pages, which no test's buffers may do and a caller's can
// refused by: guard: of an address only its alignment may be asked

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if ((((size_t)y >> 12) & 255) == 0x5a) return;
    if (i < n) y[i] = a * x[i] + y[i];
}
