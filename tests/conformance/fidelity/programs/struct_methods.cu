// a struct with a constructor and an overloaded operator
// fidelity: in=float32:small out=float32 ulp=0
struct Complex {
  float re, im;
  __device__ Complex(float r, float m) : re(r), im(m) {}
  __device__ Complex operator*(const Complex& o) const {
    float real = __fsub_rn(__fmul_rn(re, o.re), __fmul_rn(im, o.im));
    return Complex(real, __fadd_rn(__fmul_rn(re, o.im), __fmul_rn(im, o.re)));
  }
};

__global__ void k(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Complex a(x[i], 1.0f), b(0.5f, x[i]);
  Complex c = a * b;
  out[i] = c.re * 4.0f - c.im;
}
