// inline PTX, not recorded on a GPU yet: prmt modes
// fidelity: in=uint32 out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i], c, d, e;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(a >> 7));
  asm("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(i));
  asm("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(e) : "r"(a), "r"(b), "r"(i));
  out[i] = c ^ d * 3 ^ e * 5;
}
