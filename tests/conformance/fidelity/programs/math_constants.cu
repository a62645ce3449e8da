// constants of math_constants.h
// fidelity: in=int32:any out=float32 ulp=0
// numpy: np.choose(i & 3, [np.inf, np.pi, 3.4028234663852886e38, np.sqrt(2)])
#include <math_constants.h>

__global__ void k(const int* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (i & 3) {
    case 0: out[i] = CUDART_INF_F; break;
    case 1: out[i] = CUDART_PI_F; break;
    case 2: out[i] = CUDART_MAX_NORMAL_F; break;
    case 3: out[i] = CUDART_SQRT_TWO_F; break;
  }
}
