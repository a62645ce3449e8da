// Complex numbers as CUDA's header of this name has them: pairs of floats or doubles, and functions on them.
#pragma once
#include "fsr/cuda.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define FSR_HERE __host__ __device__ static inline
// T: of a part; C: the pair; S: what the functions' names end in. Division scales first, so that squares neither
// overflow nor vanish.
#define FSR_COMPLEX(T, C, S)                                                            \
  FSR_HERE C make_##C(T re, T im) { return C{re, im}; }                                 \
  FSR_HERE T cuCreal##S(C a) { return a.x; }                                            \
  FSR_HERE T cuCimag##S(C a) { return a.y; }                                            \
  FSR_HERE C cuConj##S(C a) { return C{a.x, -a.y}; }                                    \
  FSR_HERE C cuCadd##S(C a, C b) { return C{a.x + b.x, a.y + b.y}; }                    \
  FSR_HERE C cuCsub##S(C a, C b) { return C{a.x - b.x, a.y - b.y}; }                    \
  FSR_HERE C cuCmul##S(C a, C b) { return C{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  FSR_HERE C cuCdiv##S(C a, C b) {                                                      \
    T scale = T(1) / ((b.x < 0 ? -b.x : b.x) + (b.y < 0 ? -b.y : b.y));                 \
    T ar = a.x * scale, ai = a.y * scale, br = b.x * scale, bi = b.y * scale;           \
    T inverse = T(1) / (br * br + bi * bi);                                             \
    return C{(ar * br + ai * bi) * inverse, (ai * br - ar * bi) * inverse};             \
  }                                                                                     \
  FSR_HERE C cuCfma##S(C a, C b, C c) {                                                 \
    return C{a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x};                 \
  }                                                                                     \
  FSR_HERE T cuCabs##S(C a) { return hypot##S(a.x, a.y); }
FSR_COMPLEX(float, cuFloatComplex, f)
FSR_COMPLEX(double, cuDoubleComplex, )
#undef FSR_COMPLEX

FSR_HERE cuComplex make_cuComplex(float re, float im) { return cuComplex{re, im}; }
FSR_HERE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return cuDoubleComplex{a.x, a.y}; }
FSR_HERE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) { return cuFloatComplex{float(a.x), float(a.y)}; }
#undef FSR_HERE
