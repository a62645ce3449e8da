// PTX's instructions on float and double. Meanings: PTX ISA 8.7, "Floating Point Instructions". What is approximate on a GPU
// is what the intrinsics of the same name are here: see docs/host-device.md.
#pragma once
#include "math_intrinsics.h"
#include "ptx_registers.h"
#include "small_float.h"

namespace fsr_ptx {

#ifdef FSR_TRACE  // which zero becomes of what no float holds well is no part of what is computed
FSR_INSTRUCTION float flushed(float x) { return x; }
#else
FSR_INSTRUCTION float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
#endif

template <unsigned mode>
constexpr unsigned direction() {
  constexpr unsigned rounding = mode & kRounding;
  return rounding == kRz ? fsr::kZero : rounding == kRm ? fsr::kDown : rounding == kRp ? fsr::kUp : fsr::kNearest;
}
template <unsigned mode, class T>
FSR_INSTRUCTION T before(T x) {
  if constexpr ((mode & kFtz) && sizeof(T) == 4) return flushed(x);
  return x;
}
template <unsigned mode, class T>
FSR_INSTRUCTION T behind(T x) {
  if constexpr ((mode & kSat) != 0) x = x > (T)0 ? (x < (T)1 ? x : (T)1) : (T)0;
  return before<mode>(x);
}

namespace floats {

#ifdef FSR_TRACE  // where nothing is fused
#define FSR_ROUNDED(mode) ((mode & kRounding) > kRn)
#else
#define FSR_ROUNDED(mode) ((mode & kRounding) != 0)
#endif
// Without a rounding a GPU's compiler may fuse a product with a sum, as the CPU's may.
#define FSR_ARITHMETIC(name, op, function)                                                      \
  template <class T, unsigned mode = 0>                                                         \
  FSR_INSTRUCTION T name(T a, T b) {                                                            \
    a = before<mode>(a), b = before<mode>(b);                                                   \
    if constexpr (FSR_ROUNDED(mode)) return behind<mode>(fsr::function<direction<mode>()>(a, b)); \
    return behind<mode>(a op b);                                                                \
  }
FSR_ARITHMETIC(add_, +, rounded_add)
FSR_ARITHMETIC(sub_, -, rounded_sub)
FSR_ARITHMETIC(mul_, *, rounded_mul)
#undef FSR_ARITHMETIC

template <class T, unsigned mode = 0>
FSR_INSTRUCTION T fma_(T a, T b, T c) {
  a = before<mode>(a), b = before<mode>(b), c = before<mode>(c);
  if constexpr ((mode & kRounding) > kRn)
    return behind<mode>(fsr::rounded_fma<direction<mode>()>(a, b, c));
  else if constexpr (sizeof(T) == 4)
    return behind<mode>(__builtin_fmaf(a, b, c));
  else
    return behind<mode>(__builtin_fma(a, b, c));
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T mad_(T a, T b, T c) {
  return fma_<T, mode>(a, b, c);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T div_(T a, T b) {
  a = before<mode>(a), b = before<mode>(b);
  if constexpr ((mode & kApprox) != 0)
    return behind<mode>(__fdividef(a, b));
  else if constexpr ((mode & kRounding) > kRn)
    return behind<mode>(fsr::rounded_div<direction<mode>()>(a, b));
  else
    return behind<mode>(a / b);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T rcp_(T a) {
  a = before<mode>(a);
  if constexpr ((mode & kRounding) > kRn) return behind<mode>(fsr::rounded_div<direction<mode>()>((T)1, a));
  return behind<mode>((T)1 / a);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T sqrt_(T a) {
  a = before<mode>(a);
  if constexpr ((mode & kRounding) > kRn)
    return behind<mode>(fsr::rounded_sqrt<direction<mode>()>(a, a));
  else if constexpr (sizeof(T) == 4)
    return behind<mode>(sqrtf(a));
  else
    return behind<mode>(sqrt(a));
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T rsqrt_(T a) {
  a = before<mode>(a);
  if constexpr (sizeof(T) == 4) return behind<mode>(rsqrtf(a));
  else return rsqrt(a);
}
#define FSR_APPROXIMATE(name, function)         \
  template <class T, unsigned mode = 0>         \
  FSR_INSTRUCTION T name(T a) {                 \
    return behind<mode>(function(before<mode>(a))); \
  }
FSR_APPROXIMATE(sin_, __sinf)
FSR_APPROXIMATE(cos_, __cosf)
FSR_APPROXIMATE(lg2_, __log2f)
FSR_APPROXIMATE(ex2_, __exp2f)
FSR_APPROXIMATE(tanh_, __tanhf)
#undef FSR_APPROXIMATE

template <class T>
FSR_INSTRUCTION T larger(T a, T b) {
#ifdef FSR_TRACE
  if constexpr (sizeof(T) == 4) return __builtin_fmaxf(a, b);
  else return __builtin_fmax(a, b);
#else
  if (a != a) return b;
  if (b != b) return a;
  return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
#endif
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T max_(T a, T b) {
  a = before<mode>(a), b = before<mode>(b);
  if constexpr ((mode & kNaN) != 0)
    if (a != a || b != b) return fsr::bits<T>(0x7fffffffu);
  return larger(a, b);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T min_(T a, T b) {
  a = before<mode>(a), b = before<mode>(b);
  if constexpr ((mode & kNaN) != 0)
    if (a != a || b != b) return fsr::bits<T>(0x7fffffffu);
#ifdef FSR_TRACE
  if constexpr (sizeof(T) == 4) return __builtin_fminf(a, b);
  else return __builtin_fmin(a, b);
#endif
  return -larger(-a, -b);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T abs_(T a) {
  if constexpr (sizeof(T) == 4) return before<mode>(__builtin_fabsf(a));
  else return __builtin_fabs(a);
}
template <class T, unsigned mode = 0>
FSR_INSTRUCTION T neg_(T a) {
  return before<mode>(-a);
}
template <class T>
FSR_INSTRUCTION T copysign_(T sign, T size) {
  if constexpr (sizeof(T) == 4) return __builtin_copysignf(size, sign);
  else return __builtin_copysign(size, sign);
}

template <class T>
FSR_INSTRUCTION bool is_finite(T a) {
  return a - a == (T)0;
}
template <class T>
FSR_INSTRUCTION bool is_infinite(T a) {
  return a == a && !is_finite(a);
}
template <class T>
FSR_INSTRUCTION bool is_number(T a) {
  return a == a;
}
template <class T>
FSR_INSTRUCTION bool is_notanumber(T a) {
  return a != a;
}
template <class T>
FSR_INSTRUCTION bool is_subnormal(T a) {
  return a != 0 && abs_(a) < std::numeric_limits<T>::min();
}
template <class T>
FSR_INSTRUCTION bool is_normal(T a) {
  return is_finite(a) && abs_(a) >= std::numeric_limits<T>::min();
}

}  // namespace floats
}  // namespace fsr_ptx
