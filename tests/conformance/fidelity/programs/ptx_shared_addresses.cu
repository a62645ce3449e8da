// inline PTX, not recorded on a GPU yet: shared addresses
// fidelity: in=uint32 out=uint32 ulp=0
// numpy: x[::-1]
__global__ void k(const unsigned* x, unsigned* out, int n) {
  __shared__ unsigned tile[256];
  int i = threadIdx.x;
  unsigned at, v;
  asm("{ .reg .u64 s; cvta.to.shared.u64 s, %1; cvt.u32.u64 %0, s; }" : "=r"(at) : "l"(tile));
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + 4 * i), "r"(x[i]) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  asm volatile("ld.shared.u32 %0, [%1+-4];" : "=r"(v) : "r"(at + 4 * (n - i)) : "memory");
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(out + i), "r"(v) : "memory");
}
