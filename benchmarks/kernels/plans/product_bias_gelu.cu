// A linear layer: the product goes to scratch memory, bias and GELU take it from there.
// /// fsr
// [sizes]
// m = {min = 1, max = 4096, timed = 2048}
// n = {min = 1, max = 4096, timed = 1024}
// k = {min = 1, max = 4096, timed = 512}
// [args]
// a = {role = "in", shape = ["m", "k"]}
// b = {role = "in", shape = ["k", "n"]}
// bias = {role = "in", shape = ["n"]}
// out = {role = "out", shape = ["m", "n"]}
// [scratch.product]
// dtype = "float32"
// count = "m * n"
// [[launch]]
// entry = "multiply"
// grid = ["ceil_div(n, 16)", "ceil_div(m, 16)"]
// block = [16, 16]
// args = ["a", "b", "product", "m", "n", "k"]
// [[launch]]
// entry = "bias_gelu"
// grid = "ceil_div(m * n, 256)"
// block = 256
// args = ["product", "bias", "out", "m * n", "n"]
// [tolerance]
// sum_length = "k"
// ///
__global__ void multiply(const float *a, const float *b, float *c, int m, int n, int k)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n)
        return;
    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = sum;
}

__global__ void bias_gelu(const float *in, const float *bias, float *out, int count, int n)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count)
        return;
    float v = in[at] + bias[at % n];
    out[at] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}
