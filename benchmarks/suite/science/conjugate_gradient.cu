// Four steps of conjugate gradients for a shifted Laplacian with zeros around, from x = 0; sums by a tree and an atomic
// addition.
//
// /// fsr
// [sizes]
// ny = {min = 1, max = 8192, timed = 4096}
// nx = {min = 1, max = 8192, timed = 4096}
// [args]
// b = {role = "in", shape = ["ny", "nx"]}
// x = {role = "out", shape = ["ny", "nx"]}
// [[launch]]
// entry = "begin"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["b", "x", "r", "p", "rr", "ny * nx"]
// [[launch]]
// entry = "apply"
// grid = ["ceil_div(nx, 16)", "ceil_div(ny, 16)"]
// block = [16, 16]
// args = ["p", "q", "pq", "0", "ny", "nx"]
// [[launch]]
// entry = "advance"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["x", "r", "p", "q", "rr", "pq", "0", "ny * nx"]
// [[launch]]
// entry = "turn"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["p", "r", "rr", "0", "ny * nx"]
// [[launch]]
// entry = "apply"
// grid = ["ceil_div(nx, 16)", "ceil_div(ny, 16)"]
// block = [16, 16]
// args = ["p", "q", "pq", "1", "ny", "nx"]
// [[launch]]
// entry = "advance"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["x", "r", "p", "q", "rr", "pq", "1", "ny * nx"]
// [[launch]]
// entry = "turn"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["p", "r", "rr", "1", "ny * nx"]
// [[launch]]
// entry = "apply"
// grid = ["ceil_div(nx, 16)", "ceil_div(ny, 16)"]
// block = [16, 16]
// args = ["p", "q", "pq", "2", "ny", "nx"]
// [[launch]]
// entry = "advance"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["x", "r", "p", "q", "rr", "pq", "2", "ny * nx"]
// [[launch]]
// entry = "turn"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["p", "r", "rr", "2", "ny * nx"]
// [[launch]]
// entry = "apply"
// grid = ["ceil_div(nx, 16)", "ceil_div(ny, 16)"]
// block = [16, 16]
// args = ["p", "q", "pq", "3", "ny", "nx"]
// [[launch]]
// entry = "advance"
// grid = "ceil_div(ny * nx, 256)"
// block = 256
// args = ["x", "r", "p", "q", "rr", "pq", "3", "ny * nx"]
// [scratch.r]
// dtype = "float32"
// count = "ny * nx"
// [scratch.p]
// dtype = "float32"
// count = "ny * nx"
// [scratch.q]
// dtype = "float32"
// count = "ny * nx"
// [scratch.rr]
// dtype = "float32"
// count = "5"
// zeroed = true
// [scratch.pq]
// dtype = "float32"
// count = "4"
// zeroed = true
// [tolerance]
// rtol = 0.001
// atol = 0.0001
// ///
__device__ void add_up(float value, int thread, int threads, float *part, float *total) {
  part[thread] = value;
  __syncthreads();
  for (int s = threads / 2; s > 0; s /= 2) {
    if (thread < s) part[thread] += part[thread + s];
    __syncthreads();
  }
  if (thread == 0) atomicAdd(total, part[0]);
}
__global__ void begin(const float *b, float *x, float *r, float *p, float *rr, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float own = 0.0f;
  if (i < n) {
    own = b[i];
    x[i] = 0.0f;
    r[i] = own;
    p[i] = own;
  }
  add_up(own * own, threadIdx.x, 256, part, &rr[0]);
}
__global__ void apply(const float *p, float *q, float *pq, int step, int ny, int nx) {
  __shared__ float part[256];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float product = 0.0f;
  if (x < nx && y < ny) {
    int i = y * nx + x;
    float v = 5.0f * p[i];
    if (x > 0) v -= p[i - 1];
    if (x < nx - 1) v -= p[i + 1];
    if (y > 0) v -= p[i - nx];
    if (y < ny - 1) v -= p[i + nx];
    q[i] = v;
    product = v * p[i];
  }
  add_up(product, threadIdx.y * 16 + threadIdx.x, 256, part, &pq[step]);
}
__global__ void advance(float *x, float *r, const float *p, const float *q, float *rr, const float *pq, int step,
                        int n) {
  __shared__ float part[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float alpha = pq[step] > 0.0f ? rr[step] / pq[step] : 0.0f;
  float own = 0.0f;
  if (i < n) {
    x[i] += alpha * p[i];
    own = r[i] - alpha * q[i];
    r[i] = own;
  }
  add_up(own * own, threadIdx.x, 256, part, &rr[step + 1]);
}
__global__ void turn(float *p, const float *r, const float *rr, int step, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float beta = rr[step] > 0.0f ? rr[step + 1] / rr[step] : 0.0f;
  if (i < n) p[i] = r[i] + beta * p[i];
}
