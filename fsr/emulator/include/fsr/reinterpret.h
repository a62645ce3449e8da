// The bits of one type read as another: __float_as_int and its family.
#pragma once
#include <string.h>

namespace fsr {
template <class To, class From>
inline __attribute__((always_inline)) To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "types of one size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace fsr

inline int __float_as_int(float x) { return fsr::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return fsr::bits<unsigned>(x); }
inline float __int_as_float(int x) { return fsr::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return fsr::bits<float>(x); }
inline long long __double_as_longlong(double x) { return fsr::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return fsr::bits<double>(x); }
inline int __double2hiint(double x) { return (int)(fsr::bits<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return (int)fsr::bits<unsigned long long>(x); }
inline double __hiloint2double(int hi, int lo) {
  return fsr::bits<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}
