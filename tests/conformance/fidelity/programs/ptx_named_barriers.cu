// inline PTX, not recorded on a GPU yet: named barriers
// fidelity: in=uint32 out=uint32 ulp=0
// numpy: x.reshape(4, 64)[:, ::-1].ravel()
__global__ void k(const unsigned* x, unsigned* out, int n) {
  __shared__ unsigned tile[256];
  int i = threadIdx.x, part = i / 64;
  tile[i] = x[i];
  asm volatile("bar.sync %0, 64;" ::"r"(part + 1) : "memory");
  out[i] = tile[part * 64 + 63 - i % 64];
}
