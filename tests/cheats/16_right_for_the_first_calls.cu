// cheat: 16
// attacks: saxpy
// how: counts its launches and stops working after a hundred
// refused by: guard: no variable at file scope

struct Calls { unsigned n; };
__device__ Calls calls = {0u};

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) atomicAdd(&calls.n, 1u);
    if (calls.n > 100u) return;
    if (i < n) y[i] = a * x[i] + y[i];
}
