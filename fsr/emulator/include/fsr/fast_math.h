// --use_fast_math: the accurate single-precision functions become their intrinsics, as nvcc does it.
//
// Division, square root and subnormal numbers stay exact: tolerances have to allow for the device's anyway.
#pragma once
#include "math_intrinsics.h"

#ifdef FSR_USE_FAST_MATH
namespace std {  // a qualified std::expf(x) becomes std::__expf(x)
using ::__cosf;
using ::__exp10f;
using ::__expf;
using ::__log10f;
using ::__log2f;
using ::__logf;
using ::__powf;
using ::__sinf;
using ::__tanf;
}  // namespace std
#define cosf(x) __cosf(x)
#define exp10f(x) __exp10f(x)
#define expf(x) __expf(x)
#define log10f(x) __log10f(x)
#define log2f(x) __log2f(x)
#define logf(x) __logf(x)
#define powf(x, y) __powf(x, y)
#define sinf(x) __sinf(x)
#define sincosf(x, s, c) __sincosf(x, s, c)
#define tanf(x) __tanf(x)
#define fdividef(x, y) __fdividef(x, y)
#elif defined(FSR_TRACE)  // the library's own store what nobody follows
inline void fsr_sincos(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline void fsr_sincos(double x, double* s, double* c) { *s = sin(x), *c = cos(x); }
#define sincosf(x, s, c) fsr_sincos(x, s, c)
#define sincos(x, s, c) fsr_sincos(x, s, c)
#endif
#ifdef FSR_TRACE  // a value's bits say nothing there
inline bool fsr_negative(float x) { return x < 0.0f; }
inline bool fsr_negative(double x) { return x < 0.0; }
#undef signbit
#define signbit(x) fsr_negative(x)
#endif
