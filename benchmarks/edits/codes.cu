// /// fsr
// entry = "codes"
//
// [sizes]
// n = {min = 0, max = 65536, timed = 32768}
// k = {min = 1, max = 32, timed = 16}
//
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// k = {value = "k"}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
// A mix of each number's bits backwards, its leading zeros, and what it is in Gray code, k times.
__global__ void codes(const unsigned int *x, unsigned int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int v = x[i];
    for (int r = 0; r < k; r++) {
        unsigned int back = 0;
        for (int s = 0; s < 32; s++) {
            back = (back << 1) | ((v >> s) & 1u);
        }
        unsigned int zeros = 0;
        while (zeros < 32 && ((v << zeros) & 0x80000000u) == 0) {
            zeros++;
        }
        unsigned int plain = 0;
        for (int s = 0; s < 32; s++) {
            plain ^= v >> s;
        }
        v = (back >> 3) + zeros * 40503u + (plain >> 9);
    }
    y[i] = v;
}
