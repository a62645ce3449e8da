// a base class and a derived one, without virtual calls
// fidelity: in=int32:any out=int32 ulp=0
// numpy: (x & 255) * 3 + 1
struct Base {
  int v;
  __device__ int value() const { return v * 3; }
};
struct Derived : Base {
  __device__ int value() const { return Base::value() + 1; }
};

__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Derived{x[i] & 255}.value();
}
