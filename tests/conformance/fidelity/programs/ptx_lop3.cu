// inline PTX, not recorded on a GPU yet: lop3
// fidelity: in=uint32 out=uint32 ulp=0
// numpy: (x & 0x0F0F0F0F) ^ x[::-1]
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(out[i]) : "r"(0x0F0F0F0F), "r"(x[i]), "r"(x[n - 1 - i]));
}
