// The loss of each row of logits at its target, a thread a row.
// /// fsr
// [sizes]
// rows = {min = 1, max = 16384, timed = 8192}
// classes = {min = 1, max = 65536, timed = 50257}
// [args]
// logits = {role = "in", shape = ["rows", "classes"]}
// target = {role = "in", shape = ["rows"], low = 0, high = "classes - 1"}
// loss = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 128)"
// block = 128
// [tolerance]
// sum_length = "classes"
// ///
__global__ void cross_entropy(const float *logits, const int *target, float *loss, int rows, int classes)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    const float *own = logits + (size_t)row * classes;
    float best = -INFINITY;
    for (int c = 0; c < classes; c++)
        best = fmaxf(best, own[c]);
    float sum = 0.0f;
    for (int c = 0; c < classes; c++)
        sum += expf(own[c] - best);
    loss[row] = logf(sum) + best - own[target[row]];
}
