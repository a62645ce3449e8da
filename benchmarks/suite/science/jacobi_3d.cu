// One step of Jacobi's iteration with seven points in space, the planes in the grid's third dimension.
//
// /// fsr
// entry = "jacobi_3d"
// [sizes]
// nz = {min = 1, max = 1024, timed = 384}
// ny = {min = 1, max = 1024, timed = 384}
// nx = {min = 1, max = 1024, timed = 384}
// [args]
// u = {role = "in", shape = ["nz", "ny", "nx"]}
// next = {role = "out", shape = ["nz", "ny", "nx"]}
// [launch]
// grid = ["ceil_div(nx, 8)", "ceil_div(ny, 8)", "ceil_div(nz, 4)"]
// block = [8, 8, 4]
// ///
__global__ void jacobi_3d(const float *u, float *next, int nz, int ny, int nx) {
  int x = blockIdx.x * 8 + threadIdx.x;
  int y = blockIdx.y * 8 + threadIdx.y;
  int z = blockIdx.z * 4 + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  int plane = nx * ny, i = z * plane + y * nx + x;
  bool inner = x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1;
  next[i] = inner ? (u[i - 1] + u[i + 1] + u[i - nx] + u[i + nx] + u[i - plane] + u[i + plane]) * (1.0f / 6.0f) : u[i];
}
