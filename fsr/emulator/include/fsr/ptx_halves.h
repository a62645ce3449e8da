// PTX's instructions on f16, bf16 and pairs of them. Meanings: PTX ISA 8.7, "Half Precision Floating Point Instructions".
#pragma once
#include "bfloat16.h"
#include "ptx_floats.h"

namespace fsr_ptx {

template <class H>
struct Both {
  H low, high;
};

FSR_INSTRUCTION __half flushed(__half x) {
  return fsr::from_bits<__half>(x.__x & 0x7c00 ? x.__x : x.__x & 0x8000);
}
FSR_INSTRUCTION __nv_bfloat16 flushed(__nv_bfloat16 x) {
  return fsr::from_bits<__nv_bfloat16>(x.__x & 0x7f80 ? x.__x : x.__x & 0x8000);
}

namespace halves {

template <unsigned mode, class H>
FSR_INSTRUCTION H in(H x) {
  if constexpr ((mode & kFtz) != 0) return flushed(x);
  return x;
}
template <unsigned mode, class H>
FSR_INSTRUCTION H out(H x) {
  if constexpr ((mode & kSat) != 0) x = H(fsr::saturated((float)x));
  if constexpr ((mode & kRelu) != 0)
    if (!((float)x != (float)x)) x = (float)x > 0.0f ? x : fsr::from_bits<H>(0);
  return in<mode>(x);
}
template <class H>
FSR_INSTRUCTION bool is_nan(H x) {
  return (float)x != (float)x;
}

// One function each for a value and for a pair; `mode` is a template argument of both.
#define FSR_ONE(name, expression)                                                                          \
  template <class H, unsigned mode = 0>                                                                    \
  FSR_INSTRUCTION H name##one(H a) {                                                                       \
    return out<mode>(expression);                                                                          \
  }                                                                                                        \
  template <class T, unsigned mode = 0>                                                                    \
  FSR_INSTRUCTION T name(T a) {                                                                            \
    if constexpr (sizeof(T) == 2) return name##one<T, mode>(in<mode>(a));                                  \
    else return T{name##one<decltype(a.low), mode>(in<mode>(a.low)), name##one<decltype(a.low), mode>(in<mode>(a.high))}; \
  }
#define FSR_TWO(name, expression)                                                                          \
  template <class H, unsigned mode = 0>                                                                    \
  FSR_INSTRUCTION H name##one(H a, H b) {                                                                  \
    a = in<mode>(a), b = in<mode>(b);                                                                      \
    return out<mode>(expression);                                                                          \
  }                                                                                                        \
  template <class T, unsigned mode = 0>                                                                    \
  FSR_INSTRUCTION T name(T a, T b) {                                                                       \
    if constexpr (sizeof(T) == 2) return name##one<T, mode>(a, b);                                         \
    else return T{name##one<decltype(a.low), mode>(a.low, b.low), name##one<decltype(a.low), mode>(a.high, b.high)}; \
  }
FSR_TWO(add_, H((float)a + (float)b))
FSR_TWO(sub_, H((float)a - (float)b))
FSR_TWO(mul_, H((float)a * (float)b))
FSR_TWO(max_, (mode & kNaN) && (is_nan(a) || is_nan(b)) ? fsr::from_bits<H>(0x7fff) : H(fsr::maximum(a, b)))
FSR_TWO(min_, (mode & kNaN) && (is_nan(a) || is_nan(b)) ? fsr::from_bits<H>(0x7fff) : H(fsr::minimum(a, b)))
FSR_ONE(abs_, fsr::from_bits<H>(a.__x & 0x7fff))
FSR_ONE(neg_, fsr::from_bits<H>(a.__x ^ 0x8000))
FSR_ONE(ex2_, H(exp2f(a)))
FSR_ONE(tanh_, H(tanhf(a)))
#undef FSR_ONE
#undef FSR_TWO

template <class H, unsigned mode>
FSR_INSTRUCTION H fma_one(H a, H b, H c) {
  return out<mode>(H(fsr::fused_to_odd(in<mode>(a), in<mode>(b), in<mode>(c))));
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T fma_(T a, T b, T c) {
  if constexpr (sizeof(T) == 2)
    return fma_one<T, mode>(a, b, c);
  else
    return T{fma_one<decltype(a.low), mode>(a.low, b.low, c.low), fma_one<decltype(a.low), mode>(a.high, b.high, c.high)};
}

}  // namespace halves
}  // namespace fsr_ptx
