// inline PTX, not recorded on a GPU yet: f16x2 fma relu
// fidelity: in=uint32 out=uint32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(out[i]) : "r"(x[i] & 0x3fff3fff), "r"(x[n - 1 - i] & 0xbfffbfff), "r"(0x3c00bc00));
}
