// Attention of several heads in three launches: scores, softmax of their rows in place, weighted sums of the values.
// /// fsr
// [sizes]
// heads = {min = 1, max = 128, timed = 96}
// t = {min = 1, max = 2048, timed = 512}
// d = {min = 1, max = 128, timed = 64}
// [args]
// q = {role = "in", shape = ["heads", "t", "d"]}
// k = {role = "in", shape = ["heads", "t", "d"]}
// v = {role = "in", shape = ["heads", "t", "d"]}
// out = {role = "out", shape = ["heads", "t", "d"]}
// [scratch.scores]
// dtype = "float32"
// count = "heads * t * t"
// [[launch]]
// entry = "make_scores"
// grid = ["ceil_div(t, 16)", "ceil_div(t, 16)", "heads"]
// block = [16, 16]
// args = ["q", "k", "scores", "t", "d"]
// [[launch]]
// entry = "softmax_rows"
// grid = "ceil_div(heads * t, 128)"
// block = 128
// args = ["scores", "heads * t", "t"]
// [[launch]]
// entry = "weigh_values"
// grid = ["ceil_div(d, 16)", "ceil_div(t, 16)", "heads"]
// block = [16, 16]
// args = ["scores", "v", "out", "t", "d"]
// [tolerance]
// sum_length = "t + d"
// ///
__global__ void make_scores(const float *q, const float *k, float *scores, int t, int d)
{
    int to = blockIdx.x * blockDim.x + threadIdx.x;
    int from = blockIdx.y * blockDim.y + threadIdx.y;
    if (to >= t || from >= t)
        return;
    const float *own = q + ((size_t)blockIdx.z * t + from) * d;
    const float *other = k + ((size_t)blockIdx.z * t + to) * d;
    float sum = 0.0f;
    for (int c = 0; c < d; c++)
        sum += own[c] * other[c];
    scores[((size_t)blockIdx.z * t + from) * t + to] = sum / sqrtf((float)d);
}

__global__ void softmax_rows(float *scores, int rows, int t)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float *own = scores + (size_t)row * t;
    float best = -INFINITY;
    for (int c = 0; c < t; c++)
        best = fmaxf(best, own[c]);
    float sum = 0.0f;
    for (int c = 0; c < t; c++) {
        own[c] = expf(own[c] - best);
        sum += own[c];
    }
    for (int c = 0; c < t; c++)
        own[c] /= sum;
}

__global__ void weigh_values(const float *scores, const float *v, float *out, int t, int d)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int from = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= d || from >= t)
        return;
    const float *own = scores + ((size_t)blockIdx.z * t + from) * t;
    float sum = 0.0f;
    for (int to = 0; to < t; to++)
        sum += own[to] * v[((size_t)blockIdx.z * t + to) * d + c];
    out[((size_t)blockIdx.z * t + from) * d + c] = sum;
}
