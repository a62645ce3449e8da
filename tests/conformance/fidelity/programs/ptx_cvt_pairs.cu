// inline PTX, not recorded on a GPU yet: cvt pairs
// fidelity: in=float32:special out=uint32 ulp=0
__global__ void k(const float* x, unsigned* out, int n) {
  int i = threadIdx.x;
  unsigned a, b, c;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(x[i]), "f"(x[n - 1 - i]));
  asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(x[i]), "f"(x[n - 1 - i]));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(c) : "f"(x[i] != x[i] ? 1.0f : x[i]));
  out[i] = a ^ b * 3 ^ c;
}
