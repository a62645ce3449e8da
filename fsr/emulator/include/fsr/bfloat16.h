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
  FSR_OF_INTEGERS(__nv_bfloat16)
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
#define FSR_NAME bfloat16
#include "small_float_operations.h"
inline __nv_bfloat16 __float2bfloat16_rz(float x) {
  return fsr::from_bits<__nv_bfloat16>(fsr::float_to_bfloat16_directed(x, false));
}
inline __nv_bfloat16 __float2bfloat16_ru(float x) {
  return fsr::from_bits<__nv_bfloat16>(fsr::float_to_bfloat16_directed(x, x > 0.0f));
}
inline __nv_bfloat16 __float2bfloat16_rd(float x) {
  return fsr::from_bits<__nv_bfloat16>(fsr::float_to_bfloat16_directed(x, x < 0.0f));
}
#include "small_float_conversions.h"
#undef FSR_H
#undef FSR_H2
#undef FSR_NAME
#undef FSR_OF_INTEGERS

#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7FFFU)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
