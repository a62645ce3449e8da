// Histogram with one global atomic a value. The caller clears the counts first.
//
// /// fsr
// entry = "histogram"
//
// [sizes]
// n    = {min = 0, max = 67108864, timed = 16777216}
// bins = {min = 1, max = 4096, timed = 256}
//
// [args]
// values = {role = "in", shape = ["n"], low = 0, high = "bins - 1"}
// counts = {role = "inout", shape = ["bins"], value = 0}   # arrive as zero
// n      = {value = "n"}
// bins   = {value = "bins"}
//
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
//
// [tolerance]
// exact = true
// ///

__global__ void histogram(const int *values, unsigned int *counts, int n, int bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int bin = values[i];
        if (bin >= 0 && bin < bins) {
            atomicAdd(&counts[bin], 1u);
        }
    }
}
