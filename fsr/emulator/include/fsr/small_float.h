// Rounding wide values to 16-bit floating formats, shared by half and bfloat16.
#pragma once
#include "rounding.h"

namespace fsr {

// A double rounded to float by rounding to odd: an inexact result gets its last bit set. Rounding that float once
// more, to any narrower format, then gives what rounding the double directly would have given.
inline float round_to_odd(double value) {
  float near = (float)value;
  if ((double)near == value || value != value) return near;
  unsigned word = bits<unsigned>(near);
  if (__builtin_fabs((double)near) > __builtin_fabs(value)) --word;
  return bits<float>(word | 1u);
}

// a * b + c with the product exact and the sum rounded to odd: enough digits for one right rounding to 16 bits.
inline float fused_to_odd(float a, float b, float c) {
  double product = (double)a * (double)b, sum = product + (double)c;
  double part = sum - product;
  double lost = (product - (sum - part)) + ((double)c - part);
  if (lost != 0.0 && lost == lost && !(bits<unsigned long long>(sum) & 1)) {
    bool outwards = (lost > 0.0) == (sum > 0.0);
    sum = bits<double>(bits<unsigned long long>(sum) + (outwards ? 1 : -1));
  }
  return round_to_odd(sum);
}

// Integers beyond 2^40 round to the same 16-bit value as an odd neighbour with 40 digits would.
inline double integer_to_odd(unsigned long long value) {
  int extra = value >> 40 ? 24 - __builtin_clzll(value) : 0;
  unsigned long long lost = value & ((1ull << extra) - 1);
  return (double)(value >> extra | (lost ? 1 : 0)) * (double)(1ull << extra);
}
inline double integer_to_odd(long long value) {
  return value < 0 ? -integer_to_odd(0ull - (unsigned long long)value) : integer_to_odd((unsigned long long)value);
}

#ifdef FSR_TRACE  // one operation there, not the comparisons that it takes; what is a NaN is the tests' matter
inline float maximum(float a, float b) { return __builtin_fmaxf(a, b); }
inline float minimum(float a, float b) { return __builtin_fminf(a, b); }
#else
inline float maximum(float a, float b) {  // a NaN loses; +0 beats -0
  if (a != a) return b;
  if (b != b) return a;
  return a > b || (a == b && !__builtin_signbit(a)) ? a : b;
}
inline float minimum(float a, float b) { return -maximum(-a, -b); }
#endif
inline float saturated(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

}  // namespace fsr
