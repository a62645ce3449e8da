// SIMD within a word: __vadd2, __vmaxu4 and the others that treat 32 bits as two or four lanes.
#pragma once

namespace fsr {

// Applies f lane by lane. T is the lane type: 2 lanes of 16 or 4 lanes of 8 bits.
template <class T, class F>
inline unsigned lanes(unsigned a, unsigned b, F f) {
  constexpr int width = 8 * sizeof(T);
  constexpr unsigned mask = (1u << width) - 1u;
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += width)
    result |= ((unsigned)f((int)(T)(a >> shift & mask), (int)(T)(b >> shift & mask)) & mask) << shift;
  return result;
}
template <class T>
inline int clamp_lane(int x) {
  constexpr int width = 8 * sizeof(T);
  constexpr int high = T(-1) < T(0) ? (1 << (width - 1)) - 1 : (1 << width) - 1;
  constexpr int low = T(-1) < T(0) ? -(1 << (width - 1)) : 0;
  return x < low ? low : x > high ? high : x;
}
template <class T>
inline unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  lanes<T>(a, b, [&](int x, int y) { return sum += (unsigned)(x > y ? x - y : y - x); });
  return sum;
}

}  // namespace fsr

#define FSR_LANES(name, T, expression) \
  inline unsigned name(unsigned a, unsigned b) { return fsr::lanes<T>(a, b, [](int x, int y) { return expression; }); }
#define FSR_LANES_ONE(name, T, expression) \
  inline unsigned name(unsigned a) { return fsr::lanes<T>(a, 0, [](int x, int) { return expression; }); }
#define FSR_COMPARE(name, n, T, op)                    \
  FSR_LANES(__vcmp##name##n, T, (x op y) ? -1 : 0)     \
  FSR_LANES(__vset##name##n, T, (x op y) ? 1 : 0)
#define FSR_WORD(n, S, U)                                     \
  FSR_LANES(__vadd##n, U, x + y)                              \
  FSR_LANES(__vsub##n, U, x - y)                              \
  FSR_LANES(__vaddss##n, S, fsr::clamp_lane<S>(x + y))        \
  FSR_LANES(__vaddus##n, U, fsr::clamp_lane<U>(x + y))        \
  FSR_LANES(__vsubss##n, S, fsr::clamp_lane<S>(x - y))        \
  FSR_LANES(__vsubus##n, U, fsr::clamp_lane<U>(x - y))        \
  FSR_LANES(__vmaxs##n, S, x > y ? x : y)                     \
  FSR_LANES(__vmaxu##n, U, x > y ? x : y)                     \
  FSR_LANES(__vmins##n, S, x < y ? x : y)                     \
  FSR_LANES(__vminu##n, U, x < y ? x : y)                     \
  FSR_LANES(__vabsdiffs##n, S, x > y ? x - y : y - x)         \
  FSR_LANES(__vabsdiffu##n, U, x > y ? x - y : y - x)         \
  FSR_LANES(__vavgs##n, S, (x + y + (x + y >= 0 ? 1 : 0)) >> 1) \
  FSR_LANES(__vavgu##n, U, (x + y + 1) >> 1)                  \
  FSR_LANES(__vhaddu##n, U, (x + y) >> 1)                     \
  FSR_LANES_ONE(__vabs##n, S, x < 0 ? -x : x)                 \
  FSR_LANES_ONE(__vabsss##n, S, fsr::clamp_lane<S>(x < 0 ? -x : x)) \
  FSR_LANES_ONE(__vneg##n, S, -x)                             \
  FSR_LANES_ONE(__vnegss##n, S, fsr::clamp_lane<S>(-x))       \
  FSR_COMPARE(eq, n, U, ==)                                   \
  FSR_COMPARE(ne, n, U, !=)                                   \
  FSR_COMPARE(ges, n, S, >=)                                  \
  FSR_COMPARE(geu, n, U, >=)                                  \
  FSR_COMPARE(gts, n, S, >)                                   \
  FSR_COMPARE(gtu, n, U, >)                                   \
  FSR_COMPARE(les, n, S, <=)                                  \
  FSR_COMPARE(leu, n, U, <=)                                  \
  FSR_COMPARE(lts, n, S, <)                                   \
  FSR_COMPARE(ltu, n, U, <)                                   \
  inline unsigned __vsads##n(unsigned a, unsigned b) { return fsr::sum_of_differences<S>(a, b); } \
  inline unsigned __vsadu##n(unsigned a, unsigned b) { return fsr::sum_of_differences<U>(a, b); }
FSR_WORD(2, short, unsigned short)
FSR_WORD(4, signed char, unsigned char)
#undef FSR_WORD
#undef FSR_COMPARE
#undef FSR_LANES_ONE
#undef FSR_LANES
