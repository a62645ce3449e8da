// inline PTX, not recorded on a GPU yet: mma s8
// fidelity: in=uint32 out=int32 n=32 outs=128 ulp=0
__global__ void k(const unsigned* x, int* out, int n) {
  int i = threadIdx.x;
  int d[4] = {1, 2, 3, 4};
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(x[i]), "r"(x[(i + 1) % n]), "r"(x[(i + 2) % n]), "r"(x[(i + 3) % n]), "r"(~x[i]), "r"(x[(i + 9) % n]));
  for (int e = 0; e < 4; e++) out[4 * i + e] = d[e];
}
