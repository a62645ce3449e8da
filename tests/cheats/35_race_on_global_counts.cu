// cheat: 35
// attacks: histogram
// how: counts without atomics
// refused by: tests: exact counts, every case twice

__global__ void histogram(const int *values, unsigned int *counts, int n, int bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int bin = values[i];
        if (bin >= 0 && bin < bins) counts[bin] = counts[bin] + 1u;
    }
}
