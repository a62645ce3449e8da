// Sum of an array: every thread adds its element to the result. The caller clears the result first.
//
// /// fsr
// entry = "reduce_sum"
//
// [sizes]
// n = {min = 0, max = 67108864, timed = 4194304}
//
// [args]
// x     = {role = "in", shape = ["n"]}
// total = {role = "inout", shape = [1], value = 0}   # arrives as zero
// n     = {value = "n"}
//
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
//
// [tolerance]
// sum_length = "n"
// ///

__global__ void reduce_sum(const float *x, float *total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(total, x[i]);
    }
}
