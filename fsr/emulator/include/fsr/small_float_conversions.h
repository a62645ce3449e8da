// Conversions by name that __half and __nv_bfloat16 share, for the scalar type FSR_H, the pair FSR_H2 and what CUDA
// calls the type in names, FSR_NAME: half or bfloat16. Included once by half.h and once by bfloat16.h.
#define FSR_JOINED(a, b, c) a##b##c
#define FSR_EXPANDED(a, b, c) FSR_JOINED(a, b, c)
#define FSR_NAMED(before, behind) FSR_EXPANDED(before, FSR_NAME, behind)

inline FSR_H FSR_NAMED(__float2, )(float x) { return FSR_H(x); }
inline FSR_H FSR_NAMED(__float2, _rn)(float x) { return FSR_H(x); }
inline FSR_H FSR_NAMED(__double2, )(double x) { return FSR_H(x); }
inline float FSR_NAMED(__, 2float)(FSR_H x) { return x; }
inline FSR_H2 FSR_NAMED(__float2, 2_rn)(float x) { return FSR_H2(x, x); }
inline FSR_H2 FSR_NAMED(__floats2, 2_rn)(float x, float y) { return FSR_H2(x, y); }
inline FSR_H2 FSR_NAMED(__float22, 2_rn)(float2 v) { return FSR_H2(v.x, v.y); }
inline float2 FSR_NAMED(__, 22float2)(FSR_H2 v) { return make_float2(v.x, v.y); }
inline FSR_H2 FSR_EXPANDED(FSR_NAMED(__, 2), FSR_NAME, 2)(FSR_H x) { return FSR_H2(x, x); }
inline FSR_H2 FSR_NAMED(__halves2, 2)(FSR_H x, FSR_H y) { return FSR_H2(x, y); }
inline FSR_H2 FSR_NAMED(make_, 2)(FSR_H x, FSR_H y) { return FSR_H2(x, y); }
inline float __low2float(FSR_H2 v) { return v.x; }
inline float __high2float(FSR_H2 v) { return v.y; }
inline FSR_H FSR_NAMED(__low2, )(FSR_H2 v) { return v.x; }
inline FSR_H FSR_NAMED(__high2, )(FSR_H2 v) { return v.y; }
inline FSR_H2 FSR_NAMED(__low2, 2)(FSR_H2 v) { return FSR_H2(v.x, v.x); }
inline FSR_H2 FSR_NAMED(__high2, 2)(FSR_H2 v) { return FSR_H2(v.y, v.y); }
inline FSR_H2 FSR_NAMED(__lows2, 2)(FSR_H2 a, FSR_H2 b) { return FSR_H2(a.x, b.x); }
inline FSR_H2 FSR_NAMED(__highs2, 2)(FSR_H2 a, FSR_H2 b) { return FSR_H2(a.y, b.y); }
inline FSR_H2 __lowhigh2highlow(FSR_H2 v) { return FSR_H2(v.y, v.x); }
inline short FSR_NAMED(__, _as_short)(FSR_H x) { return fsr::bits<short>(x); }
inline unsigned short FSR_NAMED(__, _as_ushort)(FSR_H x) { return x.__x; }
inline FSR_H FSR_NAMED(__short_as_, )(short x) { return fsr::bits<FSR_H>(x); }
inline FSR_H FSR_NAMED(__ushort_as_, )(unsigned short x) { return fsr::bits<FSR_H>(x); }

// From integers, the other directions through a float that holds the value or an odd stand-in for it.
#define FSR_DIRECTED(name, r, T)                                                  \
  inline FSR_H FSR_NAMED(__##name##2, _##r)(T x) {                                \
    return FSR_NAMED(__float2, _##r)(fsr::round_to_odd(fsr::integer_to_odd(x)));  \
  }
#define FSR_FROM_INTEGER(name, T)                                                                           \
  inline FSR_H FSR_NAMED(__##name##2, _rn)(T x) { return FSR_H(x); }                                        \
  FSR_DIRECTED(name, rz, T) FSR_DIRECTED(name, ru, T) FSR_DIRECTED(name, rd, T)
FSR_FROM_INTEGER(int, int)
FSR_FROM_INTEGER(uint, unsigned)
FSR_FROM_INTEGER(short, short)
FSR_FROM_INTEGER(ushort, unsigned short)
FSR_FROM_INTEGER(ll, long long)
FSR_FROM_INTEGER(ull, unsigned long long)
#undef FSR_FROM_INTEGER
#undef FSR_DIRECTED

#define FSR_TO(name, T, r, R, of_nan) \
  inline T FSR_NAMED(__, 2##name##_##r)(FSR_H x) { return fsr::saturating<T, R>((float)x, (T)of_nan); }
#define FSR_TO_INTEGER(r, R)                                                                                       \
  FSR_TO(int, int, r, R, 0) FSR_TO(uint, unsigned, r, R, 0) FSR_TO(short, short, r, R, 0)                          \
  FSR_TO(ushort, unsigned short, r, R, 0) FSR_TO(ll, long long, r, R, (1ull << 63))                                \
  FSR_TO(ull, unsigned long long, r, R, (1ull << 63))
FSR_DIRECTIONS(FSR_TO_INTEGER)
#undef FSR_TO_INTEGER
FSR_TO(char, signed char, rz, fsr::kZero, 0)
FSR_TO(uchar, unsigned char, rz, fsr::kZero, 0)
#undef FSR_TO
#undef FSR_NAMED
#undef FSR_EXPANDED
#undef FSR_JOINED
