// inline PTX, not recorded on a GPU yet: shifts past the width
// fidelity: in=int32 out=int32 ulp=0
// numpy: np.where(i % 70 < 32, (x.view(np.uint32) << np.minimum(i % 70, 31).astype(np.uint32)).view(np.int32), 0) ^ (x >> np.minimum(i % 70, 31))
__global__ void k(const int* x, int* out, int n) {
  int i = threadIdx.x;
  asm("{ .reg .b32 t; shl.b32 t, %1, %2; shr.s32 %0, %1, %2; xor.b32 %0, %0, t; }" : "=&r"(out[i]) : "r"(x[i]), "r"(i % 70));
}
