// cheat: 31
// attacks: saxpy
// how: a template that instantiates itself twice, sixty levels deep
// refused by: guard: recursion with large literals is refused; the compiler has limits of time and memory besides

template <int N, int M> struct Bomb { static constexpr int value = Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value; };
template <int M> struct Bomb<0, M> { static constexpr int value = 1; };

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] + 0.0f * Bomb<60, 1>::value;
}
