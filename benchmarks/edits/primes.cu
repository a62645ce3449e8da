// /// fsr
// entry = "primes"
//
// [sizes]
// n = {min = 0, max = 262144, timed = 131072}
//
// [args]
// x = {role = "in", shape = ["n"], low = 0, high = 4000}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
// Whether each number is a prime, by trial division.
__global__ void primes(const int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    int found = v >= 2 ? 1 : 0;
    int step = 1;
    for (int d = 2; d < v; d += step) {
        if (v % d == 0) found = 0;
    }
    y[i] = found;
}
