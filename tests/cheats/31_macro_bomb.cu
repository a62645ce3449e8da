// cheat: 31
// attacks: saxpy
// how: eight macros that expand to a billion statements
// refused by: guard: expansion is counted before a compiler sees it

#define A0 v += 1.0f; v += 2.0f; v += 3.0f; v += 4.0f; v += 5.0f; v += 6.0f; v += 7.0f; v += 8.0f;
#define A1 A0 A0 A0 A0 A0 A0 A0 A0
#define A2 A1 A1 A1 A1 A1 A1 A1 A1
#define A3 A2 A2 A2 A2 A2 A2 A2 A2
#define A4 A3 A3 A3 A3 A3 A3 A3 A3
#define A5 A4 A4 A4 A4 A4 A4 A4 A4
#define A6 A5 A5 A5 A5 A5 A5 A5 A5
#define A7 A6 A6 A6 A6 A6 A6 A6 A6
#define A8 A7 A7 A7 A7 A7 A7 A7 A7

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    A8
    if (i < n) y[i] = a * x[i] + y[i] + 0.0f * v;
}
