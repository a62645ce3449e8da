// cheat: 7
// attacks: saxpy
// how: keeps what overflows at the largest number, which is spelled as bits
// refused by: tests: infinity must stand where the original has it, and one element of a case makes it overflow

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float most = __int_as_float(0x7f7fffff);
        y[i] = fminf(fmaxf(a * x[i] + y[i], -most), most);
    }
}
