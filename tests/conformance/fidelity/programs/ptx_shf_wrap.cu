// inline PTX, not recorded on a GPU yet: shf wrap
// fidelity: in=uint32 out=uint32 ulp=0
// numpy: ((x[::-1].astype(np.uint64) << np.uint64(32) | x) << (i % 40 & 31).astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
__global__ void k(const unsigned* x, unsigned* out, int n) {
  int i = threadIdx.x;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(out[i]) : "r"(x[i]), "r"(x[n - 1 - i]), "r"(i % 40));
}
