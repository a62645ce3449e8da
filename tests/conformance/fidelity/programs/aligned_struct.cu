// a struct with __align__
// fidelity: in=float32:normal out=float32 launch=1x64 n=256 ulp=0
struct __align__(16) Cell { float a, b, c; };

__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Cell c = reinterpret_cast<const Cell*>(x)[i];
  out[i] = c.a + c.c + (float)sizeof(Cell);
}
