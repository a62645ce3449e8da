// Math functions that CUDA has and the C library lacks or names otherwise, and min/max for every arithmetic type.
//
// sqrtf, expf, sinf and the rest are the C library's own: within 1 ulp, so within CUDA's documented error.
#pragma once
#include <cmath>
#include <math.h>
#include <stdlib.h>

// Standard since C++11 and missing in older standard libraries.
namespace std {
using ::acosf; using ::asinf; using ::atanf; using ::atan2f; using ::cbrtf; using ::ceilf; using ::copysignf;
using ::cosf; using ::coshf; using ::erff; using ::exp2f; using ::expf; using ::expm1f; using ::fabsf;
using ::floorf; using ::fmaf; using ::fmaxf; using ::fminf; using ::fmodf; using ::hypotf; using ::log10f;
using ::log1pf; using ::log2f; using ::logf; using ::nearbyintf; using ::powf; using ::rintf; using ::roundf;
using ::sinf; using ::sinhf; using ::sqrtf; using ::tanf; using ::tanhf; using ::truncf;
}  // namespace std

inline float rsqrtf(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
inline float fdividef(float a, float b) { return a / b; }
inline float rhypotf(float a, float b) { return (float)(1.0 / hypot((double)a, (double)b)); }
inline double rhypot(double a, double b) { return 1.0 / hypot(a, b); }
inline double norm3d(double a, double b, double c) { return __builtin_sqrt(a * a + b * b + c * c); }
inline float norm3df(float a, float b, float c) { return (float)norm3d(a, b, c); }
inline double norm4d(double a, double b, double c, double d) { return __builtin_sqrt(a * a + b * b + c * c + d * d); }
inline float norm4df(float a, float b, float c, float d) { return (float)norm4d(a, b, c, d); }
inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
inline float rnorm3df(float a, float b, float c) { return (float)rnorm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
inline float rnorm4df(float a, float b, float c, float d) { return (float)rnorm4d(a, b, c, d); }

namespace fsr {
template <class T>
inline double sum_of_squares(int n, const T* p) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += (double)p[i] * (double)p[i];
  return sum;
}

constexpr double kPi = 3.141592653589793238462643;

// x reduced exactly to [-0.5, 0.5] and the quarter it came from, so that sinpi(k) is exactly zero.
inline double sin_pi(double x) {
  double r = remainder(x, 2.0);
  if (r == 0.0 || r == 1.0 || r == -1.0) return __builtin_copysign(0.0, x);
  if (r > 0.5) r = 1.0 - r;
  if (r < -0.5) r = -1.0 - r;
  return sin(r * kPi);
}
inline double cos_pi(double x) {
  double r = fabs(remainder(x, 2.0));
  if (r == 0.5) return 0.0;
  return r < 0.25 ? cos(r * kPi) : sin((0.5 - r) * kPi);
}

// erf's inverse: a rational start (Giles, "Approximating the erfinv function", 2010, in shape), then Newton steps
// on erf or, in the tails, on erfc, where they keep their digits.
inline double erfc_inverse(double y) {
  if (!(y >= 0.0 && y <= 2.0)) return NAN;
  if (y == 0.0) return INFINITY;
  if (y == 2.0) return -INFINITY;
  double tail = y > 1.0 ? 2.0 - y : y;
  double t = sqrt(-2.0 * log(tail / 2.0));
  double x = (t - (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481))) / sqrt(2.0);
  for (int step = 0; step < 4; ++step) {
    double wrong = (erfc(x) - tail) / (2.0 / sqrt(kPi) * exp(-x * x));
    x += wrong / (1.0 - x * wrong);
  }
  return y > 1.0 ? -x : x;
}
inline double erf_inverse(double y) {
  if (fabs(y) > 0.5) return y > 0 ? erfc_inverse(1.0 - y) : -erfc_inverse(1.0 + y);
  double x = y * sqrt(kPi) / 2.0;
  for (int step = 0; step < 6; ++step) {
    double wrong = (erf(x) - y) / (2.0 / sqrt(kPi) * exp(-x * x));
    x -= wrong / (1.0 + x * wrong);
  }
  return x;
}
// exp(x*x) * erfc(x): directly while it does not overflow, then by its continued fraction.
inline double erfcx_of(double x) {
  if (x < 10.0) return exp(x * x) * erfc(x);
  double tail = x;
  for (int k = 40; k >= 1; --k) tail = x + (k / 2.0) / tail;
  return 1.0 / (sqrt(kPi) * tail);
}
inline double bessel_i(int order, double x) {
  double quarter = x * x / 4.0, term = order ? x / 2.0 : 1.0, sum = term;
  for (int k = 1; k < 500 && term > sum * 1e-18; ++k) sum += term *= quarter / (k * (double)(k + order));
  return sum;
}
}  // namespace fsr

inline double norm(int n, const double* p) { return sqrt(fsr::sum_of_squares(n, p)); }
inline float normf(int n, const float* p) { return (float)sqrt(fsr::sum_of_squares(n, p)); }
inline double rnorm(int n, const double* p) { return 1.0 / sqrt(fsr::sum_of_squares(n, p)); }
inline float rnormf(int n, const float* p) { return (float)(1.0 / sqrt(fsr::sum_of_squares(n, p))); }
inline double sinpi(double x) { return fsr::sin_pi(x); }
inline float sinpif(float x) { return (float)fsr::sin_pi(x); }
inline double cospi(double x) { return fsr::cos_pi(x); }
inline float cospif(float x) { return (float)fsr::cos_pi(x); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
// In long double: rounding the product before erfc would cost 16 ulp in the tail, the GPU loses at most 7.
inline double normcdf(double x) { return (double)(0.5L * erfcl(-(long double)x * 0.70710678118654752440084436210485L)); }
inline float normcdff(float x) { return (float)normcdf(x); }
inline double erfinv(double x) { return fsr::erf_inverse(x); }
inline float erfinvf(float x) { return (float)fsr::erf_inverse(x); }
inline double erfcinv(double x) { return fsr::erfc_inverse(x); }
inline float erfcinvf(float x) { return (float)fsr::erfc_inverse(x); }
inline double normcdfinv(double x) { return -1.41421356237309504880 * fsr::erfc_inverse(2.0 * x); }
inline float normcdfinvf(float x) { return (float)normcdfinv(x); }
inline double erfcx(double x) { return fsr::erfcx_of(x); }
inline float erfcxf(float x) { return (float)fsr::erfcx_of(x); }
inline double cyl_bessel_i0(double x) { return fsr::bessel_i(0, x); }
inline float cyl_bessel_i0f(float x) { return (float)fsr::bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return fsr::bessel_i(1, x); }
inline float cyl_bessel_i1f(float x) { return (float)fsr::bessel_i(1, x); }

// min and max: mixed signedness compares as unsigned, and of two floats a NaN loses, as in CUDA.
#define FSR_MIN_MAX(T, A, B)                                               \
  inline constexpr T min(A a, B b) { return (T)b < (T)a ? (T)b : (T)a; }   \
  inline constexpr T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
FSR_MIN_MAX(int, int, int)
FSR_MIN_MAX(unsigned, unsigned, unsigned)
FSR_MIN_MAX(unsigned, int, unsigned)
FSR_MIN_MAX(unsigned, unsigned, int)
FSR_MIN_MAX(long, long, long)
FSR_MIN_MAX(unsigned long, unsigned long, unsigned long)
FSR_MIN_MAX(unsigned long, long, unsigned long)
FSR_MIN_MAX(unsigned long, unsigned long, long)
FSR_MIN_MAX(long long, long long, long long)
FSR_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
FSR_MIN_MAX(unsigned long long, long long, unsigned long long)
FSR_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef FSR_MIN_MAX
inline float min(float a, float b) { return __builtin_fminf(a, b); }
inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
inline double min(double a, double b) { return __builtin_fmin(a, b); }
inline double max(double a, double b) { return __builtin_fmax(a, b); }
inline double min(float a, double b) { return __builtin_fmin(a, b); }
inline double max(float a, double b) { return __builtin_fmax(a, b); }
inline double min(double a, float b) { return __builtin_fmin(a, b); }
inline double max(double a, float b) { return __builtin_fmax(a, b); }
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
