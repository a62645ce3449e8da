// against: turned
// why: a thread an element of the output, grid-stride
// grid: 200
// block: 128
__global__ void turned(const float *__restrict__ input, float *__restrict__ output, int points, int features)
{
    const unsigned n = (unsigned)points * features;
    for (unsigned i = blockIdx.x * 128u + threadIdx.x; i < n; i += gridDim.x * 128u) {
        const unsigned f = i / points, p = i - f * points;
        output[i] = __ldg(&input[(size_t)p * features + f]);
    }
}
