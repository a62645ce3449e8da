// One step of Jacobi's iteration for Poisson's equation in the plane; the border stays.
//
// /// fsr
// entry = "jacobi_2d"
// [sizes]
// ny = {min = 1, max = 16384, timed = 8192}
// nx = {min = 1, max = 16384, timed = 8192}
// [args]
// u = {role = "in", shape = ["ny", "nx"]}
// f = {role = "in", shape = ["ny", "nx"]}
// next = {role = "out", shape = ["ny", "nx"]}
// [launch]
// grid = ["ceil_div(nx, 16)", "ceil_div(ny, 16)"]
// block = [16, 16]
// ///
__global__ void jacobi_2d(const float *u, const float *f, float *next, int ny, int nx) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= nx || y >= ny) return;
  int i = y * nx + x;
  if (x == 0 || y == 0 || x == nx - 1 || y == ny - 1)
    next[i] = u[i];
  else
    next[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] - f[i]);
}
