// a table in constant memory
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.array([3, 1, 4, 1, 5, 9, 2, 6])[x & 7] + i
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[x[i] & 7] + i;
}
