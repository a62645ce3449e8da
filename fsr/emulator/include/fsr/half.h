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

struct __half_raw {
  unsigned short x;
};

struct __half {
  unsigned short __x;
  __half() = default;
  __half(__half_raw raw) : __x(raw.x) {}
  __half(float x) : __x(fsr::float_to_half(x)) {}
  __half(double x) : __x(fsr::float_to_half(fsr::round_to_odd(x))) {}
  __half(short x) : __half((float)x) {}
  __half(unsigned short x) : __half((float)x) {}
  __half(int x) : __half((double)x) {}
  __half(unsigned x) : __half((double)x) {}
  __half(long x) : __half(fsr::integer_to_odd((long long)x)) {}
  __half(unsigned long x) : __half(fsr::integer_to_odd((unsigned long long)x)) {}
  __half(long long x) : __half(fsr::integer_to_odd(x)) {}
  __half(unsigned long long x) : __half(fsr::integer_to_odd(x)) {}
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
#include "small_float_operations.h"
#undef FSR_H
#undef FSR_H2

// ---- conversions by name
inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __float2half_rz(float x) { return fsr::from_bits<__half>(fsr::float_to_half_directed<3>(x)); }
inline __half __float2half_ru(float x) { return fsr::from_bits<__half>(fsr::float_to_half_directed<2>(x)); }
inline __half __float2half_rd(float x) { return fsr::from_bits<__half>(fsr::float_to_half_directed<1>(x)); }
inline __half __double2half(double x) { return __half(x); }
inline float __half2float(__half x) { return x; }
inline __half2 __float2half2_rn(float x) { return __half2(x, x); }
inline __half2 __floats2half2_rn(float x, float y) { return __half2(x, y); }
inline __half2 __float22half2_rn(float2 v) { return __half2(v.x, v.y); }
inline float2 __half22float2(__half2 v) { return make_float2(v.x, v.y); }
inline __half2 __half2half2(__half x) { return __half2(x, x); }
inline __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
inline __half2 make_half2(__half x, __half y) { return __half2(x, y); }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
inline __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
inline __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }
inline short __half_as_short(__half x) { return fsr::bits<short>(x); }
inline unsigned short __half_as_ushort(__half x) { return x.__x; }
inline __half __short_as_half(short x) { return fsr::bits<__half>(x); }
inline __half __ushort_as_half(unsigned short x) { return fsr::bits<__half>(x); }

// From integers, the other directions through a float that holds the value or an odd stand-in for it.
#define FSR_FROM_INTEGER(name, T)                                                                              \
  inline __half __##name##2half_rn(T x) { return __half(x); }                                                  \
  inline __half __##name##2half_rz(T x) { return __float2half_rz(fsr::round_to_odd(fsr::integer_to_odd(x))); } \
  inline __half __##name##2half_ru(T x) { return __float2half_ru(fsr::round_to_odd(fsr::integer_to_odd(x))); } \
  inline __half __##name##2half_rd(T x) { return __float2half_rd(fsr::round_to_odd(fsr::integer_to_odd(x))); }
namespace fsr {
inline double integer_to_odd(int x) { return x; }
inline double integer_to_odd(unsigned x) { return x; }
inline double integer_to_odd(short x) { return x; }
inline double integer_to_odd(unsigned short x) { return x; }
}  // namespace fsr
FSR_FROM_INTEGER(int, int)
FSR_FROM_INTEGER(uint, unsigned)
FSR_FROM_INTEGER(short, short)
FSR_FROM_INTEGER(ushort, unsigned short)
FSR_FROM_INTEGER(ll, long long)
FSR_FROM_INTEGER(ull, unsigned long long)
#undef FSR_FROM_INTEGER

#define FSR_TO_INTEGER(r, R)                                                                                     \
  inline int __half2int_##r(__half x) { return fsr::saturating<int, R>((float)x, 0); }                           \
  inline unsigned __half2uint_##r(__half x) { return fsr::saturating<unsigned, R>((float)x, 0u); }               \
  inline short __half2short_##r(__half x) { return fsr::saturating<short, R>((float)x, (short)0); }              \
  inline unsigned short __half2ushort_##r(__half x) {                                                            \
    return fsr::saturating<unsigned short, R>((float)x, (unsigned short)0);                                      \
  }                                                                                                              \
  inline long long __half2ll_##r(__half x) { return fsr::saturating<long long, R>((float)x, 1ll << 63); }        \
  inline unsigned long long __half2ull_##r(__half x) {                                                           \
    return fsr::saturating<unsigned long long, R>((float)x, 1ull << 63);                                         \
  }
FSR_DIRECTIONS(FSR_TO_INTEGER)
#undef FSR_TO_INTEGER
inline signed char __half2char_rz(__half x) {
  return fsr::saturating<signed char, fsr::kZero>((float)x, (signed char)0);
}
inline unsigned char __half2uchar_rz(__half x) {
  return fsr::saturating<unsigned char, fsr::kZero>((float)x, (unsigned char)0);
}

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001U)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000U)
#pragma pop_macro("__asm__")
