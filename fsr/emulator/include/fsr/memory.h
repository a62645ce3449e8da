// Loads and stores with a cache hint (the hint means nothing on a CPU), address-space queries, prefetches.
#pragma once
#include "runtime.h"

// Macros, so that the access counts for the user's own line.
#ifdef FSR_RECORD
#define __ldg(...)                                                   \
  (*[&](auto fsr_at) {                                               \
    fsr_note_read_only(fsr_at, sizeof *fsr_at, __builtin_LINE());    \
    return fsr_at;                                                   \
  }(__VA_ARGS__))
#else
#define __ldg(...) (*(__VA_ARGS__))
#endif
#define __ldcg(...) (*(__VA_ARGS__))
#define __ldca(...) (*(__VA_ARGS__))
#define __ldcs(...) (*(__VA_ARGS__))
#define __ldlu(...) (*(__VA_ARGS__))
#define __ldcv(...) (*(__VA_ARGS__))

#define FSR_STORE(name)                                                                     \
  template <class T, class V>                                                               \
  inline __attribute__((always_inline)) void name(T* p, V value) {                          \
    *p = value;                                                                             \
  }
FSR_STORE(__stcg)
FSR_STORE(__stcs)
FSR_STORE(__stwb)
FSR_STORE(__stwt)
#undef FSR_STORE

inline bool __isShared(const void* p) { return fsr_is_shared(p); }
