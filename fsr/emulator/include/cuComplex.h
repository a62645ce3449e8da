// Complex numbers as CUDA's header of this name has them: pairs of floats or doubles, and functions on them.
#pragma once
#include "fsr/cuda.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

// Division and absolute value scale first, so that squares neither overflow nor vanish.
#define FSR_COMPLEX(T, C, F)                                                                             \
  __host__ __device__ static inline C make_##C(T re, T im) { return make_##F(re, im); }                  \
  __host__ __device__ static inline C fsr_conjugate(C a) { return make_##F(a.x, -a.y); }                 \
  __host__ __device__ static inline C fsr_sum(C a, C b) { return make_##F(a.x + b.x, a.y + b.y); }       \
  __host__ __device__ static inline C fsr_difference(C a, C b) { return make_##F(a.x - b.x, a.y - b.y); } \
  __host__ __device__ static inline C fsr_product(C a, C b) {                                            \
    return make_##F(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                       \
  }                                                                                                      \
  __host__ __device__ static inline C fsr_quotient(C a, C b) {                                           \
    T scale = T(1) / ((b.x < 0 ? -b.x : b.x) + (b.y < 0 ? -b.y : b.y));                                  \
    T ar = a.x * scale, ai = a.y * scale, br = b.x * scale, bi = b.y * scale;                            \
    T inverse = T(1) / (br * br + bi * bi);                                                              \
    return make_##F((ar * br + ai * bi) * inverse, (ai * br - ar * bi) * inverse);                       \
  }                                                                                                      \
  __host__ __device__ static inline C fsr_multiply_add(C a, C b, C c) {                                  \
    return make_##F(a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x);                           \
  }
FSR_COMPLEX(float, cuFloatComplex, float2)
FSR_COMPLEX(double, cuDoubleComplex, double2)
#undef FSR_COMPLEX

__host__ __device__ static inline float cuCrealf(cuFloatComplex a) { return a.x; }
__host__ __device__ static inline float cuCimagf(cuFloatComplex a) { return a.y; }
__host__ __device__ static inline cuFloatComplex cuConjf(cuFloatComplex a) { return fsr_conjugate(a); }
__host__ __device__ static inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) { return fsr_sum(a, b); }
__host__ __device__ static inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
  return fsr_difference(a, b);
}
__host__ __device__ static inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
  return fsr_product(a, b);
}
__host__ __device__ static inline cuFloatComplex cuCdivf(cuFloatComplex a, cuFloatComplex b) {
  return fsr_quotient(a, b);
}
__host__ __device__ static inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) {
  return fsr_multiply_add(a, b, c);
}
__host__ __device__ static inline float cuCabsf(cuFloatComplex a) { return hypotf(a.x, a.y); }

__host__ __device__ static inline double cuCreal(cuDoubleComplex a) { return a.x; }
__host__ __device__ static inline double cuCimag(cuDoubleComplex a) { return a.y; }
__host__ __device__ static inline cuDoubleComplex cuConj(cuDoubleComplex a) { return fsr_conjugate(a); }
__host__ __device__ static inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) { return fsr_sum(a, b); }
__host__ __device__ static inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
  return fsr_difference(a, b);
}
__host__ __device__ static inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
  return fsr_product(a, b);
}
__host__ __device__ static inline cuDoubleComplex cuCdiv(cuDoubleComplex a, cuDoubleComplex b) {
  return fsr_quotient(a, b);
}
__host__ __device__ static inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) {
  return fsr_multiply_add(a, b, c);
}
__host__ __device__ static inline double cuCabs(cuDoubleComplex a) { return hypot(a.x, a.y); }

__host__ __device__ static inline cuComplex make_cuComplex(float re, float im) { return make_float2(re, im); }
__host__ __device__ static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
  return make_double2(a.x, a.y);
}
__host__ __device__ static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_float2(float(a.x), float(a.y));
}
