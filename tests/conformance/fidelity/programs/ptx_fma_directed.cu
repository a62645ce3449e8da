// inline PTX, not recorded on a GPU yet: fma directed
// fidelity: in=float32:wide out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = threadIdx.x;
  float a, b;
  asm("fma.rz.f32 %0, %1, %2, %1;" : "=f"(a) : "f"(x[i]), "f"(x[n - 1 - i]));
  asm("fma.rp.sat.f32 %0, %1, %2, %1;" : "=f"(b) : "f"(x[i]), "f"(x[n - 1 - i]));
  out[i] = i % 2 ? a : b;
}
