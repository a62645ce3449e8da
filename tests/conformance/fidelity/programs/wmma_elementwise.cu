// the elements of a fragment, each changed alike
// fidelity: in=float16:halves out=float32 ulp=0 launch=1x32 n=256
// numpy: np.maximum(d, 0) * 2 + 1
#include <mma.h>

__global__ void k(const __half* x, float* out, int n) {
  using namespace nvcuda;
  __shared__ __align__(32) float wide[256];
  for (int i = threadIdx.x; i < 256; i += 32) wide[i] = __half2float(x[i]);
  __syncwarp();
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::load_matrix_sync(c, wide, 16, wmma::mem_row_major);
  for (int i = 0; i < c.num_elements; ++i) c.x[i] = fmaxf(c.x[i], 0.0f) * 2.0f + 1.0f;
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}
