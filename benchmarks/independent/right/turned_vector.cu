// against: turned
// why: float2 loads where a row is even and aligned
__global__ void turned(const float *__restrict__ input, float *__restrict__ output, int points, int features)
{
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= points) return;
    const float *row = input + (size_t)p * features;
    int f = 0;
    if (((size_t)row & 7) == 0)
        for (; f + 1 < features; f += 2) {
            const float2 v = *reinterpret_cast<const float2 *>(row + f);
            output[(size_t)points * f + p] = v.x;
            output[(size_t)points * (f + 1) + p] = v.y;
        }
    for (; f < features; f++) output[(size_t)points * f + p] = row[f];
}
