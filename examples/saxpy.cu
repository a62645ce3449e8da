// y = a * x + y, one element a thread.
//
// /// fsr
// entry = "saxpy"
//
// [sizes]
// n = {min = 0, max = 67108864, timed = [16777216, 33554432]}
//
// [args]
// n = {value = "n"}
// a = {low = -4, high = 4}
// x = {role = "in", shape = ["n"]}
// y = {role = "inout", shape = ["n"]}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}
