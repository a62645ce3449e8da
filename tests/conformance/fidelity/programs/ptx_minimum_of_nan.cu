// inline PTX, not recorded on a GPU yet: minimum of nan
// fidelity: in=float32:special out=float32 ulp=0
__global__ void k(const float* x, float* out, int n) {
  int i = threadIdx.x;
  if (i % 2) asm("min.NaN.f32 %0, %1, %2;" : "=f"(out[i]) : "f"(x[i]), "f"(x[n - 1 - i]));
  else asm("max.ftz.f32 %0, %1, %2;" : "=f"(out[i]) : "f"(x[i]), "f"(x[n - 1 - i]));
}
