// a do-while loop with a trip count per thread
// fidelity: in=int32:small out=int32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = x[i] + 1, steps = 0;
  do {
    v = v & 1 ? 3 * v + 1 : v / 2;
    ++steps;
  } while (v > 1 && steps < 200);
  out[i] = steps * 1000 + v;
}
