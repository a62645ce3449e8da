// /// fsr
// entry = "turned"
// [sizes]
// points = {min = 1, max = 494080, timed = 65536}
// features = {min = 1, max = 34, timed = 34}
// [args]
// input = {role = "in", shape = ["points", "features"]}
// output = {role = "out", shape = ["features", "points"]}
// points = {value = "points"}
// features = {value = "features"}
// [launch]
// grid = "ceil_div(points, 256)"
// block = 256
// [tolerance]
// exact = true
// ///
__global__ void turned(const float *input, float *output, int points, int features)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= points) return;
    for (int f = 0; f < features; f++) output[points * f + p] = input[p * features + f];
}
