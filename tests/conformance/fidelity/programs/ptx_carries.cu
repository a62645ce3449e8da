// inline PTX, not recorded on a GPU yet: carries
// fidelity: in=uint32 out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  unsigned low, high;
  asm("add.cc.u32 %0, %2, %3; madc.hi.u32 %1, %2, %3, %2;" : "=&r"(low), "=r"(high) : "r"(x[i]), "r"(x[n - 1 - i]));
  out[i] = low ^ high;
}
