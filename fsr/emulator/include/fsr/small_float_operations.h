// Everything that __half and __nv_bfloat16 share, for the scalar type FSR_H and the pair FSR_H2. Included once by
// half.h and once by bfloat16.h, hence no include guard.
//
// + - * / and sqrt go through float: with 24 digits for operands of at most 11, the second rounding is harmless.

inline FSR_H __hadd(FSR_H a, FSR_H b) { return FSR_H((float)a + (float)b); }
inline FSR_H __hsub(FSR_H a, FSR_H b) { return FSR_H((float)a - (float)b); }
inline FSR_H __hmul(FSR_H a, FSR_H b) { return FSR_H((float)a * (float)b); }
inline FSR_H __hdiv(FSR_H a, FSR_H b) { return FSR_H((float)a / (float)b); }
inline FSR_H __hadd_rn(FSR_H a, FSR_H b) { return __hadd(a, b); }
inline FSR_H __hsub_rn(FSR_H a, FSR_H b) { return __hsub(a, b); }
inline FSR_H __hmul_rn(FSR_H a, FSR_H b) { return __hmul(a, b); }
inline FSR_H __hadd_sat(FSR_H a, FSR_H b) { return FSR_H(fsr::saturated(__hadd(a, b))); }
inline FSR_H __hsub_sat(FSR_H a, FSR_H b) { return FSR_H(fsr::saturated(__hsub(a, b))); }
inline FSR_H __hmul_sat(FSR_H a, FSR_H b) { return FSR_H(fsr::saturated(__hmul(a, b))); }
inline FSR_H __hfma(FSR_H a, FSR_H b, FSR_H c) { return FSR_H(fsr::fused_to_odd(a, b, c)); }
inline FSR_H __hfma_sat(FSR_H a, FSR_H b, FSR_H c) { return FSR_H(fsr::saturated(__hfma(a, b, c))); }
inline FSR_H __hfma_relu(FSR_H a, FSR_H b, FSR_H c) {
  FSR_H r = __hfma(a, b, c);
  return (float)r < 0.0f ? FSR_H(0.0f) : r;
}
#ifdef FSR_TRACE  // a value's bits say nothing there
inline FSR_H __hneg(FSR_H a) { return FSR_H(-(float)a); }
inline FSR_H __habs(FSR_H a) { return FSR_H(__builtin_fabsf((float)a)); }
#else
inline FSR_H __hneg(FSR_H a) { return fsr::from_bits<FSR_H>(fsr::bits<unsigned short>(a) ^ 0x8000); }
inline FSR_H __habs(FSR_H a) { return fsr::from_bits<FSR_H>(fsr::bits<unsigned short>(a) & 0x7fff); }
#endif
inline FSR_H __hmax(FSR_H a, FSR_H b) { return FSR_H(fsr::maximum(a, b)); }
inline FSR_H __hmin(FSR_H a, FSR_H b) { return FSR_H(fsr::minimum(a, b)); }
inline bool __hisnan(FSR_H a) { return (float)a != (float)a; }
inline int __hisinf(FSR_H a) { return (float)a == INFINITY ? 1 : (float)a == -INFINITY ? -1 : 0; }
#ifdef FSR_TRACE
inline FSR_H __hmax_nan(FSR_H a, FSR_H b) { return __hmax(a, b); }
inline FSR_H __hmin_nan(FSR_H a, FSR_H b) { return __hmin(a, b); }
#else
inline FSR_H __hmax_nan(FSR_H a, FSR_H b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); }
inline FSR_H __hmin_nan(FSR_H a, FSR_H b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); }
#endif

// ---- pairs, lane by lane
#define FSR_PAIR_BINARY(name)                                    \
  inline FSR_H2 name##2(FSR_H2 a, FSR_H2 b) { return FSR_H2(name(a.x, b.x), name(a.y, b.y)); }
FSR_PAIR_BINARY(__hadd)
FSR_PAIR_BINARY(__hsub)
FSR_PAIR_BINARY(__hmul)
FSR_PAIR_BINARY(__hmax)
FSR_PAIR_BINARY(__hmin)
#undef FSR_PAIR_BINARY
#define FSR_PAIR_SUFFIXED(name, scalar)                          \
  inline FSR_H2 name(FSR_H2 a, FSR_H2 b) { return FSR_H2(scalar(a.x, b.x), scalar(a.y, b.y)); }
FSR_PAIR_SUFFIXED(__h2div, __hdiv)
FSR_PAIR_SUFFIXED(__hadd2_rn, __hadd)
FSR_PAIR_SUFFIXED(__hsub2_rn, __hsub)
FSR_PAIR_SUFFIXED(__hmul2_rn, __hmul)
FSR_PAIR_SUFFIXED(__hadd2_sat, __hadd_sat)
FSR_PAIR_SUFFIXED(__hsub2_sat, __hsub_sat)
FSR_PAIR_SUFFIXED(__hmul2_sat, __hmul_sat)
FSR_PAIR_SUFFIXED(__hmax2_nan, __hmax_nan)
FSR_PAIR_SUFFIXED(__hmin2_nan, __hmin_nan)
#undef FSR_PAIR_SUFFIXED
inline FSR_H2 __hfma2(FSR_H2 a, FSR_H2 b, FSR_H2 c) { return FSR_H2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
inline FSR_H2 __hfma2_sat(FSR_H2 a, FSR_H2 b, FSR_H2 c) {
  return FSR_H2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
}
inline FSR_H2 __hfma2_relu(FSR_H2 a, FSR_H2 b, FSR_H2 c) {
  return FSR_H2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}
inline FSR_H2 __hcmadd(FSR_H2 a, FSR_H2 b, FSR_H2 c) {  // complex a * b + c
  FSR_H real = __hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x));
  return FSR_H2(real, __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));
}
inline FSR_H2 __hneg2(FSR_H2 a) { return FSR_H2(__hneg(a.x), __hneg(a.y)); }
inline FSR_H2 __habs2(FSR_H2 a) { return FSR_H2(__habs(a.x), __habs(a.y)); }
inline FSR_H2 __hisnan2(FSR_H2 a) { return FSR_H2(FSR_H((float)__hisnan(a.x)), FSR_H((float)__hisnan(a.y))); }

// ---- comparisons: ordered ones are false on NaN, the u ones true; 2 gives 1.0 or 0.0 a lane, _mask all ones,
// and hb "both lanes".
#define FSR_COMPARISON(name, ordered, unordered)                                                                 \
  inline bool __h##name(FSR_H a, FSR_H b) { return ordered; }                                                    \
  inline bool __h##name##u(FSR_H a, FSR_H b) { return unordered; }                                               \
  FSR_COMPARISON_PAIR(name)                                                                                      \
  FSR_COMPARISON_PAIR(name##u)
#define FSR_COMPARISON_PAIR(name)                                                                                \
  inline FSR_H2 __h##name##2(FSR_H2 a, FSR_H2 b) {                                                               \
    return FSR_H2(FSR_H((float)__h##name(a.x, b.x)), FSR_H((float)__h##name(a.y, b.y)));                         \
  }                                                                                                              \
  inline unsigned __h##name##2_mask(FSR_H2 a, FSR_H2 b) {                                                        \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                      \
  }                                                                                                              \
  inline bool __hb##name##2(FSR_H2 a, FSR_H2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }
FSR_COMPARISON(eq, (float)a == (float)b, !((float)a < (float)b || (float)a > (float)b))
FSR_COMPARISON(ne, (float)a < (float)b || (float)a > (float)b, (float)a != (float)b)
FSR_COMPARISON(lt, (float)a < (float)b, !((float)a >= (float)b))
FSR_COMPARISON(le, (float)a <= (float)b, !((float)a > (float)b))
FSR_COMPARISON(gt, (float)a > (float)b, !((float)a <= (float)b))
FSR_COMPARISON(ge, (float)a >= (float)b, !((float)a < (float)b))
#undef FSR_COMPARISON
#undef FSR_COMPARISON_PAIR

// ---- math: computed in float and rounded once
#define FSR_MATH(name, expression)                                       \
  inline FSR_H h##name(FSR_H a) {                                        \
    float x = (float)a;                                                  \
    return FSR_H((float)(expression));                                   \
  }                                                                      \
  inline FSR_H2 h2##name(FSR_H2 a) { return FSR_H2(h##name(a.x), h##name(a.y)); }
FSR_MATH(ceil, ceilf(x))
FSR_MATH(floor, floorf(x))
FSR_MATH(trunc, truncf(x))
FSR_MATH(rint, __builtin_nearbyintf(x))
FSR_MATH(sqrt, __builtin_sqrtf(x))
FSR_MATH(rsqrt, rsqrtf(x))
FSR_MATH(rcp, 1.0f / x)
FSR_MATH(exp, expf(x))
FSR_MATH(exp2, exp2f(x))
FSR_MATH(exp10, exp10(x))
FSR_MATH(log, logf(x))
FSR_MATH(log2, log2f(x))
FSR_MATH(log10, log10f(x))
FSR_MATH(sin, sinf(x))
FSR_MATH(cos, cosf(x))
FSR_MATH(tanh, tanhf(x))
FSR_MATH(tanh_approx, tanhf(x))
#undef FSR_MATH

// ---- operators
#define FSR_OPERATOR(op, scalar, pair)                                   \
  inline FSR_H operator op(FSR_H a, FSR_H b) { return scalar(a, b); }    \
  inline FSR_H2 operator op(FSR_H2 a, FSR_H2 b) { return pair(a, b); }   \
  inline FSR_H& operator op##=(FSR_H& a, FSR_H b) { return a = scalar(a, b); }    \
  inline FSR_H2& operator op##=(FSR_H2& a, FSR_H2 b) { return a = pair(a, b); }
FSR_OPERATOR(+, __hadd, __hadd2)
FSR_OPERATOR(-, __hsub, __hsub2)
FSR_OPERATOR(*, __hmul, __hmul2)
FSR_OPERATOR(/, __hdiv, __h2div)
#undef FSR_OPERATOR
#define FSR_RELATION(op, scalar, pair)                                   \
  inline bool operator op(FSR_H a, FSR_H b) { return scalar(a, b); }     \
  inline bool operator op(FSR_H2 a, FSR_H2 b) { return pair(a, b); }
FSR_RELATION(==, __heq, __hbeq2)
FSR_RELATION(!=, __hneu, __hbneu2)
FSR_RELATION(<, __hlt, __hblt2)
FSR_RELATION(<=, __hle, __hble2)
FSR_RELATION(>, __hgt, __hbgt2)
FSR_RELATION(>=, __hge, __hbge2)
#undef FSR_RELATION
inline FSR_H operator-(FSR_H a) { return __hneg(a); }
inline FSR_H2 operator-(FSR_H2 a) { return __hneg2(a); }
inline FSR_H operator+(FSR_H a) { return a; }
inline FSR_H2 operator+(FSR_H2 a) { return a; }
inline FSR_H& operator++(FSR_H& a) { return a = __hadd(a, FSR_H(1.0f)); }
inline FSR_H& operator--(FSR_H& a) { return a = __hsub(a, FSR_H(1.0f)); }
inline FSR_H operator++(FSR_H& a, int) {
  FSR_H before = a;
  ++a;
  return before;
}
inline FSR_H operator--(FSR_H& a, int) {
  FSR_H before = a;
  --a;
  return before;
}

// ---- atomics: one access of the scalar or of the pair
inline FSR_H atomicAdd(FSR_H* p, FSR_H v, int line = __builtin_LINE()) {
  return fsr_atomic_update(p, line, [v](FSR_H old) { return __hadd(old, v); });
}
inline FSR_H2 atomicAdd(FSR_H2* p, FSR_H2 v, int line = __builtin_LINE()) {
  return fsr_atomic_update(p, line, [v](FSR_H2 old) { return __hadd2(old, v); });
}
