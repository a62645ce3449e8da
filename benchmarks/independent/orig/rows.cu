// /// fsr
// entry = "filter_rows"
// [sizes]
// w = {min = 1, max = 8192, timed = 1024}
// h = {min = 0, max = 8192, timed = 512}
// [args]
// src = {role = "in", shape = ["h", "w"]}
// dst = {role = "out", shape = ["h", "w"]}
// w = {value = "w"}
// h = {value = "h"}
// [launch]
// grid = ["ceil_div(w, 64)", "ceil_div(h, 4)"]
// block = [64, 4]
// [tolerance]
// sum_length = 9
// ///
#define RADIUS 4
__constant__ float taps[2 * RADIUS + 1];
__global__ void filter_rows(const float *src, float *dst, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    for (int j = -RADIUS; j <= RADIUS; j++) {
        int at = x + j;
        if (at >= 0 && at < w) sum += taps[RADIUS - j] * src[y * w + at];
    }
    dst[y * w + x] = sum;
}
