// /// fsr
// entry = "gcds"
//
// [sizes]
// n = {min = 0, max = 262144, timed = 131072}
// k = {min = 1, max = 16, timed = 8}
//
// [args]
// a = {role = "in", shape = ["n"], low = 1, high = 2000}
// b = {role = "in", shape = ["k"], low = 1, high = 2000}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// k = {value = "k"}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
// The sum of the greatest common divisors of each number and k others.
__global__ void gcds(const int *a, const int *b, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = 0;
    for (int j = 0; j < k; j++) {
        int u = a[i], v = b[j];
        while (u != v) {
            if (u > v) u = u - v;
            else v = v - u;
        }
        sum += u;
    }
    int sevens = 0, rest = sum;
    while (rest >= 7) {
        rest = rest - 7;
        sevens = sevens + (rest % 2 + 1);
    }
    y[i] = sum + sevens;
}
