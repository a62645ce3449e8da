// inline PTX, not recorded on a GPU yet: ldmatrix trans
// fidelity: in=uint32 out=uint32 n=128 outs=128 launch=1x32 ulp=0
__global__ void k(const unsigned* x, unsigned* out, int n) {
  __shared__ __align__(16) unsigned tile[128];
  int i = threadIdx.x;
  for (int e = i; e < n; e += 32) tile[e] = x[e];
  __syncthreads();
  unsigned v[4], at = (unsigned)__cvta_generic_to_shared(tile + 4 * (i ^ 5));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
  for (int e = 0; e < 4; e++) out[32 * e + i] = v[e];
}
