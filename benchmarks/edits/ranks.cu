// /// fsr
// entry = "ranks"
//
// [sizes]
// n = {min = 0, max = 262144, timed = 131072}
// m = {min = 1, max = 512, timed = 256}
//
// [args]
// x = {role = "in", shape = ["n"], low = 0, high = 100000}
// table = {role = "in", shape = ["m"], low = 0, high = 100000, sorted = true}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// m = {value = "m"}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
// Where each number stands in a sorted table, and how often it stands there.
__global__ void ranks(const int *x, const int *table, int *y, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    int below = 0;
    for (int j = 0; j < m; j++) {
        if (table[j] < v) below++;
    }
    int same = 0;
    for (int j = 0; j < m; j++) {
        if (table[j] == v) same++;
    }
    y[i] = below * 1024 + same;
}
