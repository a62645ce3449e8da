// /// fsr
// entry = "hamming"
//
// [sizes]
// n = {min = 0, max = 65536, timed = 32768}
// m = {min = 1, max = 64, timed = 32}
// words = {min = 1, max = 8, timed = 4}
//
// [args]
// a = {role = "in", shape = ["n", "words"]}
// b = {role = "in", shape = ["m", "words"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// m = {value = "m"}
// words = {value = "words"}
//
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
// The smallest Hamming distance of each bit string to m others, and how many of them are as near.
__global__ void hamming(const unsigned int *a, const unsigned int *b, int *y, int n, int m, int words)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int best = 1 << 20;
    for (int j = 0; j < m; j++) {
        int far = 0;
        for (int w = 0; w < words; w++) {
            unsigned int d = a[i * words + w] ^ b[j * words + w];
            for (int s = 0; s < 32; s++) far += (d >> s) & 1u;
        }
        if (far < best) best = far;
    }
    int near = 0;
    for (int j = 0; j < m; j++) {
        int away = 0;
        for (int w = 0; w < words; w++) {
            unsigned int d = a[i * words + w] ^ b[j * words + w];
            for (int s = 0; s < 32; s++) away += (d >> s) & 1u;
        }
        if (away == best) near++;
    }
    y[i] = best * 1024 + near;
}
