// half2 sum of small integers
// fidelity: in=int32:small out=float16 outs=2 ulp=0
// numpy: np.array([(x & 3).sum(), n])
#include <cuda_fp16.h>

__global__ void k(const int* x, __half* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(reinterpret_cast<__half2*>(out), __floats2half2_rn((float)(x[i] & 3), 1.0f));
}
