// /// fsr
// entry = "powers"
//
// [sizes]
// n = {min = 0, max = 262144, timed = 131072}
//
// [args]
// x = {role = "in", shape = ["n"], low = 0, high = 60000}
// e = {role = "in", shape = ["n"], low = 0, high = 500}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
// Each number to its power, modulo a prime.
__global__ void powers(const unsigned int *x, const int *e, unsigned int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long m = 65521ull;
    unsigned long long b = x[i] % m, r = 1;
    for (int s = 0; s < e[i]; s++) {
        r = r * b % m;
    }
    unsigned long long check = 0;
    for (int s = 0; s < 32; s++) check += (r >> s) & 1ull;
    y[i] = (unsigned int)(r * 64 + check);
}
