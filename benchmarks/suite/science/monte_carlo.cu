// Points of a linear congruential generator in a quarter of a circle: each thread counts its own.
//
// /// fsr
// entry = "count_inside"
// [sizes]
// threads = {min = 1, max = 1048576, timed = 262144}
// points = {min = 1, max = 4096, timed = 1024}
// [args]
// seeds = {role = "in", shape = ["threads"], dtype = "uint32"}
// inside = {role = "inout", shape = [1], dtype = "uint32", value = 0}
// [launch]
// grid = "ceil_div(threads, 256)"
// block = 256
// [tolerance]
// exact = true
// ///
__global__ void count_inside(const unsigned *seeds, unsigned *inside, int threads, int points) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= threads) return;
  unsigned state = seeds[i];
  for (int p = 0; p < points; p++) {
    state = state * 1664525u + 1013904223u;
    float x = (state >> 8) * (1.0f / 16777216.0f);
    state = state * 1664525u + 1013904223u;
    float y = (state >> 8) * (1.0f / 16777216.0f);
    if (x * x + y * y <= 1.0f) atomicAdd(inside, 1u);
  }
}
