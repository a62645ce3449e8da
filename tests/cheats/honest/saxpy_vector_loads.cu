// honest: saxpy
// how: float4 where both pointers allow it, the tail one by one
// grid: min(ceil_div(n, 1024), 1024)
// block: 256

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    int done = 0;
    if (((size_t)x | (size_t)y) % 16 == 0) {
        done = n / 4 * 4;
        for (int k = i; k < n / 4; k += stride) {
            float4 v = reinterpret_cast<const float4 *>(x)[k];
            float4 w = reinterpret_cast<float4 *>(y)[k];
            w.x = a * v.x + w.x;
            w.y = a * v.y + w.y;
            w.z = a * v.z + w.z;
            w.w = a * v.w + w.w;
            reinterpret_cast<float4 *>(y)[k] = w;
        }
    }
    for (int k = done + i; k < n; k += stride) y[k] = a * x[k] + y[k];
}
