// inline PTX, not recorded on a GPU yet: bfe bfi
// fidelity: in=int32 out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = threadIdx.x;
  asm("{ .reg .b32 t; bfe.s32 t, %1, %2, %3; bfi.b32 %0, t, %1, %3, %2; }" : "=r"(out[i]) : "r"(x[i]), "r"(i % 37), "r"(i * 7 % 41));
}
