// cheat: 25
// attacks: saxpy
// how: loads groups of four without looking at n, and only stores within it
// refused by: recording, memcheck: out of bounds reads
// grid: ceil_div(n, 1024)
// block: 256

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    float v[4];
    for (int k = 0; k < 4; k++) v[k] = x[i + k];
    for (int k = 0; k < 4; k++) {
        if (i + k < n) y[i + k] = a * v[k] + y[i + k];
    }
}
