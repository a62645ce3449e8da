// cheat: 30
// attacks: saxpy
// how: embeds the bytes of a host file
// refused by: guard: no #embed

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    static constexpr unsigned char bytes[] = {
#embed "/etc/hostname"
    };
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] + 0.0f * bytes[0];
}
