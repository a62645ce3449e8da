// a switch whose cases run into each other
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.array([11, 10, 100, 100, 1000, 1000, 999, 1000])[x & 7]
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = 0;
  switch (x[i] & 7) {
    case 0: v += 1;
    case 1: v += 10; break;
    case 2:
    case 3: v += 100; break;
    case 6: v = -1;
    default: v += 1000;
  }
  out[i] = v;
}
