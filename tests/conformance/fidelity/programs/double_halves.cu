// the two words of a double, swapped and put back
// fidelity: in=float64:wide out=float64 ulp=0
// numpy: (x.view('u8') ^ np.uint64(1)).view('f8')
__global__ void k(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __hiloint2double(__double2hiint(x[i]), __double2loint(x[i]) ^ 1);
}
