// inline PTX, not recorded on a GPU yet: mma f16
// fidelity: in=uint32 out=float32 n=32 outs=128 ulp=0
__global__ void k(const unsigned* x, float* out, int n) {
  int i = threadIdx.x;
  unsigned a[4], b[2];
  float d[4] = {1, 2, 3, 4};
  for (int e = 0; e < 4; e++) a[e] = (x[(i + 5 * e) % n] & 0x80008000) | 0x3c003c00;
  for (int e = 0; e < 2; e++) b[e] = (x[(i + 7 * e + 3) % n] & 0x84008400) | 0x38003800;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  for (int e = 0; e < 4; e++) out[4 * i + e] = d[e];
}
