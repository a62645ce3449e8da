// /// fsr
// entry = "path"
// [sizes]
// cols = {min = 1, max = 1000000, timed = 65536}
// [args]
// cost = {role = "in", shape = ["cols"], low = 0, high = 1000}
// from = {role = "in", shape = ["cols"], low = 0, high = 100000000}
// to = {role = "out", shape = ["cols"]}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(cols, 128)"
// block = 128
// ///
__global__ void path(const int *cost, const int *from, int *to, int cols)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= cols) return;
    int best = from[i];
    if (i > 0) best = min(best, from[i - 1]);
    if (i + 1 < cols) best = min(best, from[i + 1]);
    to[i] = best + cost[i];
}
