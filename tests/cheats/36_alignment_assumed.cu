// cheat: 36
// attacks: saxpy
// how: vector loads at addresses that need not be multiples of 16
// refused by: watching on pointers at 4 and 8 modulo 16, where every vector that is copied looks at its own address
// grid: ceil_div(n, 1024)
// block: 256

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 3 < n) {
        float4 v = reinterpret_cast<const float4 *>(x)[i];
        float4 w = reinterpret_cast<float4 *>(y)[i];
        w.x = a * v.x + w.x;
        w.y = a * v.y + w.y;
        w.z = a * v.z + w.z;
        w.w = a * v.w + w.w;
        reinterpret_cast<float4 *>(y)[i] = w;
    } else {
        for (int k = 4 * i; k < n; k++) y[k] = a * x[k] + y[k];
    }
}
