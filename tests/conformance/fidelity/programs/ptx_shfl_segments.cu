// inline PTX, not recorded on a GPU yet: shfl segments
// fidelity: in=uint32 out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  unsigned a, b, p;
  asm volatile("{ .reg .pred q; shfl.sync.up.b32 %0|q, %2, %3, 0x1800, -1; selp.u32 %1, 1, 0, q; }" : "=r"(a), "=r"(p) : "r"(x[i]), "r"(i % 5));
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1c07, -1;" : "=r"(b) : "r"(x[i]), "r"(i * 3));
  out[i] = a ^ b * 3 ^ p;
}
