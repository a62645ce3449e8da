// A step of AdamW: parameters and both moments are read and written.
// /// fsr
// [sizes]
// n = {min = 1, max = 33554432, timed = 16777216}
// [args]
// p = {role = "inout", shape = ["n"]}
// g = {role = "in", shape = ["n"]}
// m = {role = "inout", shape = ["n"]}
// v = {role = "inout", shape = ["n"], nonnegative = true}
// rate = {role = "scalar", low = 0.0001, high = 0.01}
// decay = {role = "scalar", low = 0.001, high = 0.1}
// [launch]
// grid = "ceil_div(n, 512)"
// block = 512
// ///
__global__ void adamw(float *p, const float *g, float *m, float *v, float rate, float decay, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float grad = g[i];
    m[i] = 0.9f * m[i] + 0.1f * grad;
    v[i] = 0.999f * v[i] + 0.001f * grad * grad;
    float step = (m[i] / 0.1f) / (sqrtf(v[i] / 0.001f) + 1e-8f);
    p[i] = p[i] - rate * (step + decay * p[i]);
}
