// Accelerations of bodies by all others, a body a thread, one pass over global memory.
//
// /// fsr
// entry = "accelerations"
// [sizes]
// n = {min = 1, max = 131072, timed = 65536}
// [args]
// bodies = {role = "in", shape = ["n", 4], low = "0.1", high = 1, alignment = 16}
// acceleration = {role = "out", shape = ["n", 3]}
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// [tolerance]
// sum_length = "n"
// ///
__global__ void accelerations(const float4 *bodies, float *acceleration, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 own = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < n; j++) {
    float4 other = bodies[j];
    float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    float squared = dx * dx + dy * dy + dz * dz + 0.01f;
    float inverse = 1.0f / sqrtf(squared);
    float pull = other.w * inverse * inverse * inverse;
    ax += pull * dx;
    ay += pull * dy;
    az += pull * dz;
  }
  acceleration[3 * i] = ax;
  acceleration[3 * i + 1] = ay;
  acceleration[3 * i + 2] = az;
}
