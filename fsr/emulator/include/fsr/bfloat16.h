// __nv_bfloat16 and __nv_bfloat162: the upper half of a float, with CUDA's conversions, arithmetic and math.
#pragma once
#include "half.h"

namespace fsr {

#ifdef FSR_TRACE  // told by name: their bits would say nothing
extern "C" float fsr_bfloat16_widen(unsigned short word);
extern "C" unsigned short fsr_bfloat16_round(float x);
inline float bfloat16_to_float(unsigned short word) { return fsr_bfloat16_widen(word); }
inline unsigned short float_to_bfloat16(float x) { return fsr_bfloat16_round(x); }
#else
inline float bfloat16_to_float(unsigned short word) { return bits<float>((unsigned)word << 16); }
inline unsigned short float_to_bfloat16(float x) {
  if (x != x) return 0x7fff;
  unsigned word = bits<unsigned>(x);
  return (unsigned short)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}
#endif
// away: whether magnitudes that do not fit grow.
inline unsigned short float_to_bfloat16_directed(float x, bool away) {
  if (x != x) return 0x7fff;
  unsigned word = bits<unsigned>(x);
  bool inexact = (word & 0xffffu) != 0;
  return (unsigned short)((word >> 16) + (inexact && away ? 1u : 0u));
}

}  // namespace fsr

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short __x;
  __nv_bfloat16() = default;
  __nv_bfloat16(__nv_bfloat16_raw raw) : __x(raw.x) {}
  __nv_bfloat16(float x) : __x(fsr::float_to_bfloat16(x)) {}
  __nv_bfloat16(double x) : __x(fsr::float_to_bfloat16(fsr::round_to_odd(x))) {}
  explicit __nv_bfloat16(__half x) : __nv_bfloat16((float)x) {}
  __nv_bfloat16(short x) : __nv_bfloat16((float)x) {}
  __nv_bfloat16(unsigned short x) : __nv_bfloat16((float)x) {}
  __nv_bfloat16(int x) : __nv_bfloat16((double)x) {}
  __nv_bfloat16(unsigned x) : __nv_bfloat16((double)x) {}
  __nv_bfloat16(long x) : __nv_bfloat16(fsr::integer_to_odd((long long)x)) {}
  __nv_bfloat16(unsigned long x) : __nv_bfloat16(fsr::integer_to_odd((unsigned long long)x)) {}
  __nv_bfloat16(long long x) : __nv_bfloat16(fsr::integer_to_odd(x)) {}
  __nv_bfloat16(unsigned long long x) : __nv_bfloat16(fsr::integer_to_odd(x)) {}
  operator float() const { return fsr::bfloat16_to_float(__x); }
  operator __nv_bfloat16_raw() const { return {__x}; }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define FSR_H __nv_bfloat16
#define FSR_H2 __nv_bfloat162
#include "small_float_operations.h"
#undef FSR_H
#undef FSR_H2

// ---- conversions by name
inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
inline __nv_bfloat16 __float2bfloat16_rz(float x) {
  return fsr::from_bits<__nv_bfloat16>(fsr::float_to_bfloat16_directed(x, false));
}
inline __nv_bfloat16 __float2bfloat16_ru(float x) {
  return fsr::from_bits<__nv_bfloat16>(fsr::float_to_bfloat16_directed(x, x > 0.0f));
}
inline __nv_bfloat16 __float2bfloat16_rd(float x) {
  return fsr::from_bits<__nv_bfloat16>(fsr::float_to_bfloat16_directed(x, x < 0.0f));
}
inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162(x, x); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return __nv_bfloat162(x, y); }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __nv_bfloat162(v.x, v.y); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return make_float2(v.x, v.y); }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
inline float __low2float(__nv_bfloat162 v) { return v.x; }
inline float __high2float(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.x, v.x); }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.y); }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return __nv_bfloat162(v.y, v.x); }
inline short __bfloat16_as_short(__nv_bfloat16 x) { return fsr::bits<short>(x); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.__x; }
inline __nv_bfloat16 __short_as_bfloat16(short x) { return fsr::bits<__nv_bfloat16>(x); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return fsr::bits<__nv_bfloat16>(x); }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return x; }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return x; }
inline __nv_bfloat16 __short2bfloat16_rn(short x) { return x; }
inline __nv_bfloat16 __ushort2bfloat16_rn(unsigned short x) { return x; }
inline __nv_bfloat16 __ll2bfloat16_rn(long long x) { return x; }
inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long x) { return x; }

#define FSR_TO_INTEGER(r, R)                                                                                          \
  inline int __bfloat162int_##r(__nv_bfloat16 x) { return fsr::saturating<int, R>((float)x, 0); }                     \
  inline unsigned __bfloat162uint_##r(__nv_bfloat16 x) { return fsr::saturating<unsigned, R>((float)x, 0u); }         \
  inline short __bfloat162short_##r(__nv_bfloat16 x) { return fsr::saturating<short, R>((float)x, (short)0); }        \
  inline unsigned short __bfloat162ushort_##r(__nv_bfloat16 x) {                                                      \
    return fsr::saturating<unsigned short, R>((float)x, (unsigned short)0);                                           \
  }                                                                                                                   \
  inline long long __bfloat162ll_##r(__nv_bfloat16 x) { return fsr::saturating<long long, R>((float)x, 1ll << 63); }  \
  inline unsigned long long __bfloat162ull_##r(__nv_bfloat16 x) {                                                     \
    return fsr::saturating<unsigned long long, R>((float)x, 1ull << 63);                                              \
  }
FSR_DIRECTIONS(FSR_TO_INTEGER)
#undef FSR_TO_INTEGER

#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7FFFU)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
