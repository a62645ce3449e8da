// Arithmetic with a rounding direction: __fadd_rz, __dmul_ru, __fmaf_rd and conversions such as __float2int_ru.
//
// The CPU runs in round-to-nearest. The other directions set the rounding mode of the SSE unit around one
// operation that the optimiser cannot move (an asm statement), and restore it.
#pragma once
#include "reinterpret.h"

namespace fsr {

enum Rounding : unsigned { kNearest = 0x0000, kDown = 0x2000, kUp = 0x4000, kZero = 0x6000 };

template <unsigned R>
struct RoundingScope {
  unsigned saved;
  RoundingScope() {
    __asm__ volatile("stmxcsr %0" : "=m"(saved)::"memory");
    unsigned now = (saved & ~0x6000u) | R;
    __asm__ volatile("ldmxcsr %0" ::"m"(now) : "memory");
  }
  ~RoundingScope() { __asm__ volatile("ldmxcsr %0" ::"m"(saved) : "memory"); }
};
template <>
struct RoundingScope<kNearest> {  // the CPU is there already; the asm still keeps mul and add from fusing
  RoundingScope() {}
  ~RoundingScope() {}
};

#define FSR_ROUNDED_BINARY(name, f32, f64)                                            \
  template <unsigned R>                                                               \
  inline float name(float a, float b) {                                               \
    RoundingScope<R> scope;                                                           \
    __asm__ volatile(f32 " %1, %0, %0" : "+x"(a) : "x"(b));                               \
    return a;                                                                         \
  }                                                                                   \
  template <unsigned R>                                                               \
  inline double name(double a, double b) {                                            \
    RoundingScope<R> scope;                                                           \
    __asm__ volatile(f64 " %1, %0, %0" : "+x"(a) : "x"(b));                               \
    return a;                                                                         \
  }
FSR_ROUNDED_BINARY(rounded_add, "vaddss", "vaddsd")
FSR_ROUNDED_BINARY(rounded_sub, "vsubss", "vsubsd")
FSR_ROUNDED_BINARY(rounded_mul, "vmulss", "vmulsd")
FSR_ROUNDED_BINARY(rounded_div, "vdivss", "vdivsd")
FSR_ROUNDED_BINARY(rounded_sqrt, "vsqrtss", "vsqrtsd")
#undef FSR_ROUNDED_BINARY

template <unsigned R>
inline float rounded_fma(float a, float b, float c) {
  RoundingScope<R> scope;
  __asm__ volatile("vfmadd213ss %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
  return a;
}
template <unsigned R>
inline double rounded_fma(double a, double b, double c) {
  RoundingScope<R> scope;
  __asm__ volatile("vfmadd213sd %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
  return a;
}
template <unsigned R>
inline float rounded_narrow(double a) {
  RoundingScope<R> scope;
  float to;
  __asm__ volatile("vcvtsd2ss %1, %1, %0" : "=x"(to) : "x"(a));
  return to;
}
template <unsigned R>
inline float rounded_float(long long a) {
  RoundingScope<R> scope;
  float to = 0;
  __asm__ volatile("vcvtsi2ssq %1, %0, %0" : "+x"(to) : "r"(a));
  return to;
}
template <unsigned R>
inline double rounded_double(long long a) {
  RoundingScope<R> scope;
  double to = 0;
  __asm__ volatile("vcvtsi2sdq %1, %0, %0" : "+x"(to) : "r"(a));
  return to;
}
// Values of 2^63 and more are halved; the lost bit stays sticky, so that every direction rounds as it should.
template <unsigned R>
inline float rounded_float(unsigned long long a) {
  return a >> 63 ? 2.0f * rounded_float<R>((long long)(a >> 1 | (a & 1))) : rounded_float<R>((long long)a);
}
template <unsigned R>
inline double rounded_double(unsigned long long a) {
  return a >> 63 ? 2.0 * rounded_double<R>((long long)(a >> 1 | (a & 1))) : rounded_double<R>((long long)a);
}

// vroundsd takes the direction in the instruction; 8 silences the inexact flag.
template <unsigned R>
inline double integral(double a) {
  if constexpr (R == kNearest) return __builtin_nearbyint(a);
  if constexpr (R == kDown) return __builtin_floor(a);
  if constexpr (R == kUp) return __builtin_ceil(a);
  return __builtin_trunc(a);
}

// To an integer as the device does it: NaN gives 0 (the lowest value from a double to a 64-bit integer), values
// outside saturate.
template <class To, unsigned R>
inline To saturating(double value, To nan) {
  constexpr bool is_signed = To(-1) < To(0);
  constexpr int digits = 8 * sizeof(To) - (is_signed ? 1 : 0);
  constexpr To highest = is_signed ? To(~(1ull << (8 * sizeof(To) - 1))) : To(~0ull);
  constexpr To lowest = is_signed ? To(1ull << (8 * sizeof(To) - 1)) : To(0);
  if (value != value) return nan;
  double whole = integral<R>(value);
  double limit = digits == 64 ? 0x1p64 : double(1ull << (digits & 63));
  if (whole >= limit) return highest;
  if (whole < (is_signed ? -limit : 0.0)) return lowest;
  return To(whole);
}

}  // namespace fsr

#define FSR_DIRECTIONS(M) M(rn, fsr::kNearest) M(rz, fsr::kZero) M(ru, fsr::kUp) M(rd, fsr::kDown)

#define FSR_ARITHMETIC(r, R)                                                                           \
  inline float __fadd_##r(float a, float b) { return fsr::rounded_add<R>(a, b); }                      \
  inline float __fsub_##r(float a, float b) { return fsr::rounded_sub<R>(a, b); }                      \
  inline float __fmul_##r(float a, float b) { return fsr::rounded_mul<R>(a, b); }                      \
  inline float __fdiv_##r(float a, float b) { return fsr::rounded_div<R>(a, b); }                      \
  inline float __fsqrt_##r(float a) { return fsr::rounded_sqrt<R>(a, a); }                             \
  inline float __frcp_##r(float a) { return fsr::rounded_div<R>(1.0f, a); }                            \
  inline float __fmaf_##r(float a, float b, float c) { return fsr::rounded_fma<R>(a, b, c); }          \
  inline float __fmaf_ieee_##r(float a, float b, float c) { return fsr::rounded_fma<R>(a, b, c); }     \
  inline double __dadd_##r(double a, double b) { return fsr::rounded_add<R>(a, b); }                   \
  inline double __dsub_##r(double a, double b) { return fsr::rounded_sub<R>(a, b); }                   \
  inline double __dmul_##r(double a, double b) { return fsr::rounded_mul<R>(a, b); }                   \
  inline double __ddiv_##r(double a, double b) { return fsr::rounded_div<R>(a, b); }                   \
  inline double __dsqrt_##r(double a) { return fsr::rounded_sqrt<R>(a, a); }                           \
  inline double __drcp_##r(double a) { return fsr::rounded_div<R>(1.0, a); }                           \
  inline double __fma_##r(double a, double b, double c) { return fsr::rounded_fma<R>(a, b, c); }       \
  inline float __double2float_##r(double a) { return fsr::rounded_narrow<R>(a); }                      \
  inline float __int2float_##r(int a) { return fsr::rounded_float<R>((long long)a); }                  \
  inline float __uint2float_##r(unsigned a) { return fsr::rounded_float<R>((long long)a); }            \
  inline float __ll2float_##r(long long a) { return fsr::rounded_float<R>(a); }                        \
  inline float __ull2float_##r(unsigned long long a) { return fsr::rounded_float<R>(a); }              \
  inline double __ll2double_##r(long long a) { return fsr::rounded_double<R>(a); }                     \
  inline double __ull2double_##r(unsigned long long a) { return fsr::rounded_double<R>(a); }           \
  inline int __float2int_##r(float a) { return fsr::saturating<int, R>(a, 0); }                        \
  inline unsigned __float2uint_##r(float a) { return fsr::saturating<unsigned, R>(a, 0u); }            \
  inline long long __float2ll_##r(float a) { return fsr::saturating<long long, R>(a, 1ll << 63); }     \
  inline unsigned long long __float2ull_##r(float a) {                                                 \
    return fsr::saturating<unsigned long long, R>(a, 1ull << 63);                                      \
  }                                                                                                    \
  inline int __double2int_##r(double a) { return fsr::saturating<int, R>(a, 1 << 31); }                \
  inline unsigned __double2uint_##r(double a) { return fsr::saturating<unsigned, R>(a, 1u << 31); }    \
  inline long long __double2ll_##r(double a) { return fsr::saturating<long long, R>(a, 1ll << 63); }   \
  inline unsigned long long __double2ull_##r(double a) {                                               \
    return fsr::saturating<unsigned long long, R>(a, 1ull << 63);                                      \
  }
FSR_DIRECTIONS(FSR_ARITHMETIC)
#undef FSR_ARITHMETIC

inline double __int2double_rn(int a) { return a; }
inline double __uint2double_rn(unsigned a) { return a; }
inline float __frsqrt_rn(float a) { return (float)(1.0 / __builtin_sqrt((double)a)); }
