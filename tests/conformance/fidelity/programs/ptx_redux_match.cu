// inline PTX, not recorded on a GPU yet: redux match
// fidelity: in=int32:small out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = threadIdx.x;
  int a, b, c;
  asm volatile("redux.sync.min.s32 %0, %1, -1;" : "=r"(a) : "r"(x[i] - 50));
  asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(b) : "r"(x[i]));
  asm volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(c) : "r"(x[i] % 7));
  out[i] = a ^ b << 8 ^ c;
}
