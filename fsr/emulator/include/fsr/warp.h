// Shuffles, votes, matches and reductions among the 32 lanes of a warp.
#pragma once
#include "reinterpret.h"
#include "runtime.h"

namespace fsr {

template <class T>
inline T exchange(unsigned mask, T value, unsigned source, int line) {
  static_assert(sizeof(T) <= sizeof(fsr_post), "a lane posts at most 16 bytes");
  const fsr_post* posts = fsr_warp_exchange(&value, sizeof value, mask, line);
  T result;
  __builtin_memcpy(&result, posts[source & 31].bytes, sizeof result);
  return result;
}

// The source lane of each kind of shuffle, as the PTX manual defines shfl for a segment of `width` lanes; a lane
// without a source keeps its own value.
inline unsigned indexed_source(unsigned lane, int source, int width) {
  unsigned segment = (unsigned)width - 1u;
  return (lane & ~segment) | ((unsigned)source & segment);
}
inline unsigned up_source(unsigned lane, unsigned delta, int width) {
  unsigned start = lane & ~((unsigned)width - 1u);
  return (int)(lane - (delta & 31u)) >= (int)start ? lane - (delta & 31u) : lane;
}
inline unsigned down_source(unsigned lane, unsigned delta, int width) {
  unsigned end = lane | ((unsigned)width - 1u);
  return lane + (delta & 31u) <= end ? lane + (delta & 31u) : lane;
}
inline unsigned xor_source(unsigned lane, int other, int width) {
  unsigned end = lane | ((unsigned)width - 1u), source = lane ^ ((unsigned)other & 31u);
  return source <= end ? source : lane;
}

// What may be shuffled, and as what: integers narrower than int are widened as an argument of CUDA's would be.
template <class T, bool Integer = std::is_integral_v<T> || std::is_enum_v<T>>
struct Shuffled {
  using type = T;
};
template <class T>
struct Shuffled<T, true> {
  using type = decltype(+T());
};

}  // namespace fsr

#define FSR_SHUFFLE(name, Second, source)                                                                      \
  template <class T>                                                                                           \
  inline typename fsr::Shuffled<T>::type name(unsigned mask, T value, Second second, int width = 32,           \
                                              int line = __builtin_LINE()) {                                   \
    static_assert(std::is_arithmetic_v<T> || sizeof(T) <= 4, "CUDA shuffles numbers and 16-bit float pairs");  \
    typename fsr::Shuffled<T>::type wide = value;                                                              \
    return fsr::exchange(mask, wide, fsr::source(fsr_lane(), second, width), line);                            \
  }
FSR_SHUFFLE(__shfl_sync, int, indexed_source)
FSR_SHUFFLE(__shfl_up_sync, unsigned, up_source)
FSR_SHUFFLE(__shfl_down_sync, unsigned, down_source)
FSR_SHUFFLE(__shfl_xor_sync, int, xor_source)
#undef FSR_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return fsr_ballot(mask, predicate, line);
}
inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return fsr_ballot(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return fsr_ballot(mask, !predicate, line) == 0;
}
inline int __uni_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  unsigned yes = fsr_ballot(mask, predicate, line);
  return yes == 0 || fsr_ballot(mask, !predicate, line) == 0;
}
inline unsigned __activemask(int line = __builtin_LINE()) { return fsr_activemask(line); }

namespace fsr {

// Calls f(lane, value) for the lanes of `mask` that are still running, in lane order.
template <class T, class F>
inline void each_lane(unsigned mask, T value, int line, F f) {
  unsigned present = fsr_ballot(mask, 1, line);
  const fsr_post* posts = fsr_warp_exchange(&value, sizeof value, mask, line);
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(present >> lane & 1)) continue;
    T theirs;
    __builtin_memcpy(&theirs, posts[lane].bytes, sizeof theirs);
    f(lane, theirs);
  }
}
template <class T, class F>
inline T reduce_lanes(unsigned mask, T value, int line, F combine) {
  T result{};
  bool first = true;
  each_lane(mask, value, line, [&](unsigned, T theirs) {
    result = first ? theirs : combine(result, theirs);
    first = false;
  });
  return result;
}

}  // namespace fsr

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  unsigned same = 0;
  fsr::each_lane(mask, value, line, [&](unsigned lane, T theirs) {
    if (__builtin_memcmp(&theirs, &value, sizeof value) == 0) same |= 1u << lane;
  });
  return same;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, int line = __builtin_LINE()) {
  bool equal = true;
  fsr::each_lane(mask, value, line, [&](unsigned, T theirs) {
    equal = equal && __builtin_memcmp(&theirs, &value, sizeof value) == 0;
  });
  *all = equal;
  return equal ? mask : 0u;
}

#define FSR_REDUCE(name, T, expression)                                               \
  inline T name(unsigned mask, T value, int line = __builtin_LINE()) {                \
    return fsr::reduce_lanes(mask, value, line, [](T a, T b) -> T { return expression; }); \
  }
FSR_REDUCE(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
FSR_REDUCE(__reduce_add_sync, unsigned, a + b)
FSR_REDUCE(__reduce_min_sync, int, a < b ? a : b)
FSR_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
FSR_REDUCE(__reduce_max_sync, int, a > b ? a : b)
FSR_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
FSR_REDUCE(__reduce_and_sync, unsigned, a & b)
FSR_REDUCE(__reduce_or_sync, unsigned, a | b)
FSR_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef FSR_REDUCE
