// against: turned
// why: the division in float: wrong from 2^24 elements
// grid: 200
// block: 128
__global__ void turned(const float *__restrict__ input, float *__restrict__ output, int points, int features)
{
    const unsigned n = (unsigned)points * features;
    for (unsigned i = blockIdx.x * 128u + threadIdx.x; i < n; i += gridDim.x * 128u) {
        const unsigned f = (unsigned)((float)i / (float)points), p = i - f * points;
        output[i] = __ldg(&input[(size_t)p * features + f]);
    }
}
