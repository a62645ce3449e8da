// Floating types of P bits of precision held in a double: what widen.py puts in the place of float, half and bfloat16.
//
// With FSR_NOISE every operation is off by up to half a unit of its P bits, times FSR_NOISE, at random (Monte Carlo arithmetic: Parker,
// "Monte Carlo arithmetic: exploiting randomness in floating-point arithmetic", UCLA CSD-970002, 1997), so that a run
// shows how far the original's own rounding may carry each element. The noise is a function of the exact result's bits,
// and where the exact result has no more bits than the type, of the operands': equal operations err alike, as real ones
// do; inputs that differ in their last bits give another sample. Without FSR_NOISE nothing is rounded to P bits: the float64 answer of a kernel written in half.
#pragma once
#ifndef INFINITY
#define INFINITY ((double)(1e300 * 1e300))
#endif

template <bool C, class T = void> struct fsr_if {};
template <class T> struct fsr_if<true, T> { using type = T; };
template <class T> struct fsr_number { static constexpr bool value = false; };
#define FSR_NUMBER(T) template <> struct fsr_number<T> { static constexpr bool value = true; };
FSR_NUMBER(bool) FSR_NUMBER(char) FSR_NUMBER(signed char) FSR_NUMBER(unsigned char) FSR_NUMBER(short)
FSR_NUMBER(unsigned short) FSR_NUMBER(int) FSR_NUMBER(unsigned) FSR_NUMBER(long) FSR_NUMBER(unsigned long)
FSR_NUMBER(long long) FSR_NUMBER(unsigned long long) FSR_NUMBER(float) FSR_NUMBER(double)
#undef FSR_NUMBER
#define FSR_IF_NUMBER(T) class = typename fsr_if<fsr_number<T>::value>::type

// What a comparison, a conversion and a step see. To draw another sample inputs are shaken, by far less than any rounding
// (2^-40): that must not carry one past an edge on which it lies exactly, where no kernel could err. What was computed
// lies so near to a number of P bits by chance alone.
template <int P> __host__ __device__ inline double fsr_seen(double v) {
#ifdef FSR_NOISE
  if (P < 53 && v - v == 0.0) {
    union { double number; unsigned long long bits; } near = {v};
    constexpr int spare = P < 53 ? 53 - P : 1;
    near.bits = (near.bits + (1ull << (spare - 1))) >> spare << spare;
    const double off = near.number - v, most = 3.7e-12 * v;  // 2^-38
    if (off <= most ? off >= -most : off >= most && off <= -most) return near.number;
  }
#endif
  return v;
}

template <int P> struct fsr_wide {
  double v;
  fsr_wide() = default;
  template <class T, class = typename fsr_if<fsr_number<T>::value>::type>
  __host__ __device__ constexpr fsr_wide(T x) : v((double)x) {}
  template <int Q> __host__ __device__ constexpr fsr_wide(fsr_wide<Q> x) : v(x.v) {}
  template <class T, class = typename fsr_if<fsr_number<T>::value>::type>
  __host__ __device__ explicit constexpr operator T() const {
    return __builtin_is_constant_evaluated() ? (T)v : (T)fsr_seen<P>(v);
  }
};

__device__ inline unsigned long long fsr_salt(double a, double b = 0.0, double c = 0.0) {
  return (unsigned long long)__double_as_longlong(a) + (unsigned long long)__double_as_longlong(b) + 3 * (unsigned long long)__double_as_longlong(c);
}
template <int P, bool Function = false> __device__ inline fsr_wide<P> fsr_rounded(double r, unsigned long long operands = 0) {
#ifdef FSR_NOISE
  if (!(r < 1e300 && r > -1e300)) return r;
  unsigned long long b = (unsigned long long)__double_as_longlong(r);
  if (P == 53) b ^= operands * 0x9E3779B97F4A7C15ull;  // exp(-x) near 1 is the same double for many x
  b = (b ^ (b >> 30)) * 0xBF58476D1CE4E5B9ull;
  b = (b ^ (b >> 27)) * 0x94D049BB133111EBull;
  b ^= b >> 31;
  // A double cannot be off by half of its last bit: one up, one down or neither. (A share of r would be rounded away
  // wherever r is just above a power of two, and a residue of 0 there would look exact.)
  if (P == 53) {
    const bool deep = r < 2.2e-308 && r > -2.2e-308 && (r > 1e-322 * FSR_NOISE || r < -1e-322 * FSR_NOISE);  // four spacings, as below
    const long long up = b >> 63, down = Function ? !up : b >> 62 & 1;  // functions are not rounded correctly: one off
    const long long last = deep ? (long long)(b >> 61) - 4 : up - down;
    return r == 0.0 ? r : __longlong_as_double(__double_as_longlong(r) + FSR_NOISE * last);
  }
  // Where r is denormal in the type an error is no share of it but some of the spacings there: four, and eight in float,
  // where that is a millionth of the smallest normal value. (A running mean rounds by a whole spacing a term.)
  const double spacing = P == 24 ? 1.4e-45 : P == 11 ? 5.97e-8 : P == 8 ? 9.19e-41 : 0.0;
  const double least = (P == 24 ? 8.0 : 4.0) * spacing, most = (r < 0 ? -r : r) / (double)(1ull << P), normal = spacing * (double)(1ull << (P - 1));
  r += (double)(long long)b * (FSR_NOISE / 9223372036854775808.0) * (r < normal && r > -normal && r != 0.0 ? least : most);
#endif
  return r;
}

// Nothing is rounded where nothing is added, or the factor is one, or equal numbers cancel: x + 0 * t lies on an edge
// where x does.
inline __device__ bool fsr_no_sum(double a, double b) { return a == 0.0 || b == 0.0; }
inline __device__ bool fsr_no_product(double a, double b) { return a == 1.0 || a == -1.0 || b == 1.0 || b == -1.0; }
inline __device__ bool fsr_no_quotient(double, double b) { return b == 1.0 || b == -1.0; }
#define FSR_OPERATOR(op, none)                                                                                      \
  template <int P, int Q> __device__ inline fsr_wide<(P > Q ? P : Q)> operator op(fsr_wide<P> a, fsr_wide<Q> b) {   \
    constexpr int M = P > Q ? P : Q;                                                                                \
    const double s = fsr_seen<P>(a.v), t = fsr_seen<Q>(b.v), r = a.v op b.v;                                        \
    if (s op t == 0.0) return s op t;                                                                               \
    return none(s, t) ? fsr_wide<M>(r) : fsr_rounded<M>(r, fsr_salt(a.v, b.v));                                                         \
  }                                                                                                                 \
  template <int P, class T, FSR_IF_NUMBER(T)> __device__ inline fsr_wide<P> operator op(fsr_wide<P> a, T b) {       \
    return a op fsr_wide<P>(b);                                                                                     \
  }                                                                                                                 \
  template <int P, class T, FSR_IF_NUMBER(T)> __device__ inline fsr_wide<P> operator op(T a, fsr_wide<P> b) {       \
    return fsr_wide<P>(a) op b;                                                                                     \
  }                                                                                                                 \
  template <int P, class T> __device__ inline fsr_wide<P>& operator op##=(fsr_wide<P>& a, T b) { return a = a op b; }
FSR_OPERATOR(+, fsr_no_sum) FSR_OPERATOR(-, fsr_no_sum) FSR_OPERATOR(*, fsr_no_product) FSR_OPERATOR(/, fsr_no_quotient)
template <int P> __device__ inline fsr_wide<P>& operator++(fsr_wide<P>& a) { return a += 1; }
template <int P> __device__ inline fsr_wide<P>& operator--(fsr_wide<P>& a) { return a -= 1; }
template <int P> __device__ inline fsr_wide<P> operator++(fsr_wide<P>& a, int) { const fsr_wide<P> was = a; a += 1; return was; }
template <int P> __device__ inline fsr_wide<P> operator--(fsr_wide<P>& a, int) { const fsr_wide<P> was = a; a -= 1; return was; }
template <int P> __device__ inline fsr_wide<P> operator-(fsr_wide<P> a) { return -a.v; }
template <int P> __device__ inline fsr_wide<P> operator+(fsr_wide<P> a) { return a; }

#define FSR_COMPARISON(op)                                                                                         \
  template <int P, int Q> __device__ inline bool operator op(fsr_wide<P> a, fsr_wide<Q> b) {                       \
    return fsr_seen<P>(a.v) op fsr_seen<Q>(b.v);                                                                   \
  }                                                                                                                \
  template <int P, class T, FSR_IF_NUMBER(T)> __device__ inline bool operator op(fsr_wide<P> a, T b) {             \
    return fsr_seen<P>(a.v) op (double)b;                                                                          \
  }                                                                                                                \
  template <int P, class T, FSR_IF_NUMBER(T)> __device__ inline bool operator op(T a, fsr_wide<P> b) {             \
    return (double)a op fsr_seen<P>(b.v);                                                                          \
  }
FSR_COMPARISON(<) FSR_COMPARISON(>) FSR_COMPARISON(<=) FSR_COMPARISON(>=) FSR_COMPARISON(==) FSR_COMPARISON(!=)

#define FSR_UNARY(name) template <int P> __device__ inline fsr_wide<P> name(fsr_wide<P> a) { return fsr_rounded<P, true>(name(a.v), fsr_salt(a.v)); }
#define FSR_EXACT(name) template <int P> __device__ inline fsr_wide<P> name(fsr_wide<P> a) { return name(fsr_seen<P>(a.v)); }
#define FSR_BINARY(name, call, round, see)                                                                         \
  template <int P, int Q> __device__ inline fsr_wide<(P > Q ? P : Q)> name(fsr_wide<P> a, fsr_wide<Q> b) {         \
    return round<(P > Q ? P : Q)>(call(see<P>(a.v), see<Q>(b.v)), fsr_salt(a.v, b.v));                             \
  }                                                                                                                \
  template <int P, class T, FSR_IF_NUMBER(T)> __device__ inline fsr_wide<P> name(fsr_wide<P> a, T b) {             \
    return round<P>(call(see<P>(a.v), (double)b), fsr_salt(a.v, (double)b));                                       \
  }                                                                                                                \
  template <int P, class T, FSR_IF_NUMBER(T)> __device__ inline fsr_wide<P> name(T a, fsr_wide<P> b) {             \
    return round<P>(call((double)a, see<P>(b.v)), fsr_salt((double)a, b.v));                                       \
  }
template <int P> __device__ inline double fsr_same(double v) { return v; }
template <int P> __device__ inline fsr_wide<P> fsr_kept(double r, unsigned long long) { return r; }
FSR_UNARY(exp) FSR_UNARY(exp2) FSR_UNARY(exp10) FSR_UNARY(expm1) FSR_UNARY(log) FSR_UNARY(log2) FSR_UNARY(log10)
FSR_UNARY(log1p) FSR_UNARY(rsqrt) FSR_UNARY(cbrt) FSR_UNARY(sin) FSR_UNARY(cos) FSR_UNARY(tan)
FSR_UNARY(asin) FSR_UNARY(acos) FSR_UNARY(atan) FSR_UNARY(sinh) FSR_UNARY(cosh) FSR_UNARY(tanh) FSR_UNARY(erf)
FSR_UNARY(erfc) FSR_UNARY(normcdf)
template <int P> __device__ inline fsr_wide<P> sqrt(fsr_wide<P> a) { return fsr_rounded<P>(sqrt(a.v), fsr_salt(a.v)); }
FSR_EXACT(floor) FSR_EXACT(ceil) FSR_EXACT(rint) FSR_EXACT(round) FSR_EXACT(trunc) FSR_EXACT(nearbyint)
template <int P> __device__ inline fsr_wide<P> fabs(fsr_wide<P> a) { return fabs(a.v); }
template <int P> __device__ inline fsr_wide<P> abs(fsr_wide<P> a) { return fabs(a.v); }
FSR_BINARY(pow, pow, fsr_rounded, fsr_same) FSR_BINARY(atan2, atan2, fsr_rounded, fsr_same)
FSR_BINARY(hypot, hypot, fsr_rounded, fsr_same)
FSR_BINARY(fmax, fmax, fsr_kept, fsr_same) FSR_BINARY(fmin, fmin, fsr_kept, fsr_same)
FSR_BINARY(max, fmax, fsr_kept, fsr_same) FSR_BINARY(min, fmin, fsr_kept, fsr_same) FSR_BINARY(copysign, copysign, fsr_kept, fsr_same)
FSR_BINARY(fdim, fdim, fsr_rounded, fsr_same) FSR_BINARY(fmod, fmod, fsr_kept, fsr_seen)
template <int P, class B, class C> __device__ inline fsr_wide<P> fma(fsr_wide<P> a, B b, C c) {
  const double r = fma(a.v, fsr_wide<P>(b).v, fsr_wide<P>(c).v);
  const unsigned long long operands = fsr_salt(a.v, fsr_wide<P>(b).v, fsr_wide<P>(c).v);
  return a.v == 0.0 || fsr_wide<P>(b).v == 0.0 ? fsr_wide<P>(r) : fsr_rounded<P>(r, operands);
}
template <class A, int P, class C, FSR_IF_NUMBER(A)> __device__ inline fsr_wide<P> fma(A a, fsr_wide<P> b, C c) {
  return fma(fsr_wide<P>(a), b, c);
}
template <int P> __device__ inline bool isnan(fsr_wide<P> a) { return a.v != a.v; }
template <int P> __device__ inline bool isinf(fsr_wide<P> a) { return a.v == INFINITY || a.v == -INFINITY; }
template <int P> __device__ inline bool isfinite(fsr_wide<P> a) { return a.v - a.v == 0; }
template <int P> __device__ inline bool signbit(fsr_wide<P> a) { return __double_as_longlong(a.v) < 0; }
template <class A, class B> __device__ inline fsr_wide<24> wide_divide(A a, B b) { return fsr_wide<24>(a) / fsr_wide<24>(b); }
template <class A> __device__ inline fsr_wide<24> wide_saturate(A a) { return fmin(fmax(fsr_wide<24>(a), 0.0), 1.0); }
#define FSR_ROUNDED(name, op)                                                                                       \
  template <class A, class B> __device__ inline fsr_wide<24> name(A a, B b) { return fsr_wide<24>(a) op fsr_wide<24>(b); }
FSR_ROUNDED(wide_add, +) FSR_ROUNDED(wide_sub, -) FSR_ROUNDED(wide_mul, *) FSR_ROUNDED(wide_div, /)
#define FSR_TO_INTEGER(name) template <int P> __device__ inline int name(fsr_wide<P> a) { return name(fsr_seen<P>(a.v)); }
FSR_TO_INTEGER(__double2int_rn) FSR_TO_INTEGER(__double2int_rz) FSR_TO_INTEGER(__double2int_rd)
FSR_TO_INTEGER(__double2int_ru)

template <class T> __device__ inline T wide_load(const T* p) { return *p; }
template <class T, class V> __device__ inline void wide_store(T* p, V value) { *p = value; }
template <int P, class T> __device__ inline fsr_wide<P> atomicAdd(fsr_wide<P>* p, T x) {
  return atomicAdd(&p->v, fsr_wide<P>(x).v);
}
#define FSR_SHUFFLE(name, T)                                                                                        \
  template <int P> __device__ inline fsr_wide<P> name(unsigned mask, fsr_wide<P> a, T lane, int width = 32) {       \
    return name(mask, a.v, lane, width);                                                                            \
  }
FSR_SHUFFLE(__shfl_sync, int) FSR_SHUFFLE(__shfl_up_sync, unsigned) FSR_SHUFFLE(__shfl_down_sync, unsigned)
FSR_SHUFFLE(__shfl_xor_sync, int)

#define FSR_VECTOR(name, P)                                                                                         \
  using name = fsr_wide<P>;                                                                                         \
  struct alignas(16) name##x2 { fsr_wide<P> x, y; };                                                                \
  struct name##x3 { fsr_wide<P> x, y, z; };                                                                         \
  struct alignas(16) name##x4 { fsr_wide<P> x, y, z, w; };
FSR_VECTOR(fsr_f64, 53) FSR_VECTOR(fsr_f32, 24) FSR_VECTOR(fsr_f16, 11) FSR_VECTOR(fsr_bf16, 8)
#define FSR_MAKE(T)                                                                                                 \
  __device__ inline T##x2 make_##T##x2(T x, T y) { return {x, y}; }                                                 \
  __device__ inline T##x3 make_##T##x3(T x, T y, T z) { return {x, y, z}; }                                         \
  __device__ inline T##x4 make_##T##x4(T x, T y, T z, T w) { return {x, y, z, w}; }
FSR_MAKE(fsr_f32) FSR_MAKE(fsr_f64)

// Half and bfloat16: the functions of cuda_fp16.h and cuda_bf16.h that kernels use most.
template <int P> __device__ inline fsr_f32 __half2float(fsr_wide<P> a) { return a.v; }
template <int P> __device__ inline fsr_f32 __bfloat162float(fsr_wide<P> a) { return a.v; }
#define FSR_NARROWING(T, P, name)                                                                                   \
  template <class A> __device__ inline T name(A a) { return fsr_rounded<P>(fsr_f32(a).v); }
FSR_NARROWING(fsr_f16, 11, wide_to_half) FSR_NARROWING(fsr_bf16, 8, wide_to_bf16)
#define FSR_HALF_OPERATOR(name, op)                                                                                 \
  template <int P> __device__ inline fsr_wide<P> name(fsr_wide<P> a, fsr_wide<P> b) { return a op b; }
FSR_HALF_OPERATOR(__hadd, +) FSR_HALF_OPERATOR(__hsub, -) FSR_HALF_OPERATOR(__hmul, *) FSR_HALF_OPERATOR(__hdiv, /)
template <int P> __device__ inline fsr_wide<P> __hfma(fsr_wide<P> a, fsr_wide<P> b, fsr_wide<P> c) { return fma(a, b, c); }
template <int P> __device__ inline fsr_wide<P> __hneg(fsr_wide<P> a) { return -a; }
template <int P> __device__ inline fsr_wide<P> __habs(fsr_wide<P> a) { return fabs(a); }
template <int P> __device__ inline fsr_wide<P> __hmax(fsr_wide<P> a, fsr_wide<P> b) { return fmax(a, b); }
template <int P> __device__ inline fsr_wide<P> __hmin(fsr_wide<P> a, fsr_wide<P> b) { return fmin(a, b); }
#define FSR_HALF_FUNCTION(name, call) template <int P> __device__ inline fsr_wide<P> name(fsr_wide<P> a) { return call(a); }
FSR_HALF_FUNCTION(hexp, exp) FSR_HALF_FUNCTION(hexp2, exp2) FSR_HALF_FUNCTION(hlog, log) FSR_HALF_FUNCTION(hsqrt, sqrt)
FSR_HALF_FUNCTION(hrsqrt, rsqrt) FSR_HALF_FUNCTION(hsin, sin) FSR_HALF_FUNCTION(hcos, cos) FSR_HALF_FUNCTION(hfloor, floor)
template <int P> __device__ inline fsr_wide<P> hrcp(fsr_wide<P> a) { return 1.0 / a; }
template <int P> __device__ inline bool __hisnan(fsr_wide<P> a) { return a.v != a.v; }
#define FSR_HALF_COMPARISON(name, op)                                                                               \
  template <int P> __device__ inline bool name(fsr_wide<P> a, fsr_wide<P> b) { return a.v op b.v; }
FSR_HALF_COMPARISON(__hgt, >) FSR_HALF_COMPARISON(__hge, >=) FSR_HALF_COMPARISON(__hlt, <) FSR_HALF_COMPARISON(__hle, <=)
FSR_HALF_COMPARISON(__heq, ==) FSR_HALF_COMPARISON(__hne, !=)
#define FSR_PAIRS(T)                                                                                                \
  __device__ inline T##x2 __hadd2(T##x2 a, T##x2 b) { return {a.x + b.x, a.y + b.y}; }                              \
  __device__ inline T##x2 __hsub2(T##x2 a, T##x2 b) { return {a.x - b.x, a.y - b.y}; }                              \
  __device__ inline T##x2 __hmul2(T##x2 a, T##x2 b) { return {a.x * b.x, a.y * b.y}; }                              \
  __device__ inline T##x2 __hmax2(T##x2 a, T##x2 b) { return {fmax(a.x, b.x), fmax(a.y, b.y)}; }                    \
  __device__ inline T##x2 __hfma2(T##x2 a, T##x2 b, T##x2 c) { return {fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)}; }
FSR_PAIRS(fsr_f16) FSR_PAIRS(fsr_bf16)
__device__ inline fsr_f16 __low2half(fsr_f16x2 a) { return a.x; }
__device__ inline fsr_f16 __high2half(fsr_f16x2 a) { return a.y; }
__device__ inline fsr_f32 __low2float(fsr_f16x2 a) { return a.x; }
__device__ inline fsr_f32 __high2float(fsr_f16x2 a) { return a.y; }
__device__ inline fsr_f32x2 __half22float2(fsr_f16x2 a) { return {a.x, a.y}; }
__device__ inline fsr_f32x2 __bfloat1622float2(fsr_bf16x2 a) { return {a.x, a.y}; }
__device__ inline fsr_f16x2 __halves2half2(fsr_f16 a, fsr_f16 b) { return {a, b}; }
__device__ inline fsr_f16x2 __half2half2(fsr_f16 a) { return {a, a}; }
template <class A, class B> __device__ inline fsr_f16x2 __floats2half2_rn(A a, B b) { return {wide_to_half(a), wide_to_half(b)}; }
template <class A> __device__ inline fsr_f16x2 __float2half2_rn(A a) { return {wide_to_half(a), wide_to_half(a)}; }
__device__ inline fsr_f16x2 __float22half2_rn(fsr_f32x2 a) { return {wide_to_half(a.x), wide_to_half(a.y)}; }
__device__ inline fsr_bf16x2 __float22bfloat162_rn(fsr_f32x2 a) { return {wide_to_bf16(a.x), wide_to_bf16(a.y)}; }
template <class A, class B> __device__ inline fsr_bf16x2 __floats2bfloat162_rn(A a, B b) { return {wide_to_bf16(a), wide_to_bf16(b)}; }
