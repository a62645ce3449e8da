// __half and __half2: IEEE binary16, with CUDA's conversions, arithmetic, comparisons and math.
#pragma once
#include "atomics.h"
#include "math_functions.h"
#include "small_float.h"
#include "warp.h"
#pragma push_macro("__asm__")  // which is refused in kernels
#undef __asm__

namespace fsr {

template <class H>
inline H from_bits(unsigned word) {
  return bits<H>((unsigned short)word);
}
#if defined(__FLT16_MAX__)
inline float half_to_float(unsigned short word) { return (float)bits<_Float16>(word); }
inline unsigned short nearest_half(float x) { return bits<unsigned short>((_Float16)x); }
#else  // clang before 15 and g++ before 12 have the instructions and no such type
inline float half_to_float(unsigned short word) {
  float x;
  __asm__("vcvtph2ps %1, %0" : "=x"(x) : "x"(bits<float>((unsigned)word)));
  return x;
}
inline unsigned short nearest_half(float x) {
  float packed;
  __asm__("vcvtps2ph $0, %1, %0" : "=x"(packed) : "x"(x));
  return (unsigned short)bits<unsigned>(packed);
}
#endif
inline unsigned short float_to_half(float x) {
#ifdef FSR_TRACE
  return nearest_half(x);
#endif
  return x != x ? 0x7fff : nearest_half(x);  // the device's one NaN
}
// The direction stands in the instruction: 0 nearest, 1 down, 2 up, 3 towards zero.
template <int Direction>
inline unsigned short float_to_half_directed(float x) {
  if (x != x) return 0x7fff;
  float packed;
  __asm__("vcvtps2ph %2, %1, %0" : "=x"(packed) : "x"(x), "i"(Direction));
  return (unsigned short)bits<unsigned>(packed);
}

}  // namespace fsr

#define FSR_OF_INTEGERS(T)                                                 \
  T(short x) : T((float)x) {}                                              \
  T(unsigned short x) : T((float)x) {}                                     \
  T(int x) : T((double)x) {}                                               \
  T(unsigned x) : T((double)x) {}                                          \
  T(long x) : T(fsr::integer_to_odd((long long)x)) {}                      \
  T(unsigned long x) : T(fsr::integer_to_odd((unsigned long long)x)) {}    \
  T(long long x) : T(fsr::integer_to_odd(x)) {}                            \
  T(unsigned long long x) : T(fsr::integer_to_odd(x)) {}

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short __x;
  __half() = default;
  __half(__half_raw raw) : __x(raw.x) {}
  __half(float x) : __x(fsr::float_to_half(x)) {}
  __half(double x) : __x(fsr::float_to_half(fsr::round_to_odd(x))) {}
  FSR_OF_INTEGERS(__half)
  operator float() const { return fsr::half_to_float(__x); }
  operator __half_raw() const { return {__x}; }
};

struct __half2_raw {
  unsigned short x, y;
};

struct alignas(4) __half2 {
  __half x, y;
  __half2() = default;
  __half2(__half a, __half b) : x(a), y(b) {}
  FSR_ALIGNED_AT(4)
};
using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

#define FSR_H __half
#define FSR_H2 __half2
#define FSR_NAME half
#include "small_float_operations.h"
inline __half __float2half_rz(float x) { return fsr::from_bits<__half>(fsr::float_to_half_directed<3>(x)); }
inline __half __float2half_ru(float x) { return fsr::from_bits<__half>(fsr::float_to_half_directed<2>(x)); }
inline __half __float2half_rd(float x) { return fsr::from_bits<__half>(fsr::float_to_half_directed<1>(x)); }
namespace fsr {
inline double integer_to_odd(int x) { return x; }
inline double integer_to_odd(unsigned x) { return x; }
inline double integer_to_odd(short x) { return x; }
inline double integer_to_odd(unsigned short x) { return x; }
}  // namespace fsr
#include "small_float_conversions.h"
#undef FSR_H
#undef FSR_H2
#undef FSR_NAME

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001U)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000U)
#pragma pop_macro("__asm__")
