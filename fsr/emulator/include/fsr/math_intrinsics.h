// The fast-math intrinsics, built the way the device builds them: __expf is 2^(x * log2 e) in float, __powf goes
// through __log2f, so that their errors grow where the device's do. docs/host-device.md holds the ulp table.
#pragma once
#include "math_functions.h"
#include "rounding.h"

inline float __fdividef(float a, float b) {
#ifdef FSR_TRACE
  return a / b;
#endif
  float size = __builtin_fabsf(b);
  // Documented: for 2^126 < |b| < 2^128 the result is 0 (a finite) or NaN (a infinite).
  if (size > 0x1p126f && size < __builtin_inff()) return __builtin_isinf(a) ? __builtin_nanf("") : 0.0f * a;
  float quotient = a * (1.0f / b);
  __asm__("" : "+x"(quotient));  // one instruction of the device: its product never fuses with a sum behind it
  return quotient;
}
inline float __exp2f(float x) { return exp2f(x); }
inline float __expf(float x) { return exp2f(x * 1.4426950408889634f); }
inline float __exp10f(float x) { return exp2f(x * 3.3219280948873623f); }
inline float __log2f(float x) { return log2f(x); }
inline float __logf(float x) { return log2f(x) * 0.6931471805599453f; }
inline float __log10f(float x) { return log2f(x) * 0.3010299956639812f; }
inline float __powf(float x, float y) { return exp2f(y * log2f(x)); }
namespace fsr {
// The device reduces the argument by one float product, so that the error grows with |x|.
inline double turns(float x) { return 2.0 * kPi * (double)(x * 0.15915494309189535f); }
}  // namespace fsr
inline float __sinf(float x) { return (float)sin(fsr::turns(x)); }
inline float __cosf(float x) { return (float)cos(fsr::turns(x)); }
inline void __sincosf(float x, float* s, float* c) { *s = __sinf(x), *c = __cosf(x); }
inline float __tanf(float x) { return __fdividef(__sinf(x), __cosf(x)); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }  // NaN gives 0
inline float saturate(float x) { return __saturatef(x); }
