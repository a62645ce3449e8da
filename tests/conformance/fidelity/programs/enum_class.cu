// a scoped enumeration
// fidelity: in=int32:any out=int32 ulp=0
// numpy: np.where(x & 1, -i, i)
enum class Kind { even, odd };

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Kind kind = static_cast<Kind>(x[i] & 1);
  out[i] = kind == Kind::odd ? -i : i;
}
