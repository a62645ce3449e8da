// PTX's loads, stores and fences. What the recorder is told: PTX ISA 8.7, "Memory Consistency Model"; cache operators and
// hints are hints only. An address is a register and an offset in bytes; those of shared memory are what cvta.to.shared and
// __cvta_generic_to_shared give.
#pragma once
#include "ptx_registers.h"

namespace fsr_ptx {

enum Space { kGeneric, kGlobal, kShared };
constexpr unsigned kStrong = FSR_STRONG, kReadOnly = 1u << 16;  // beside fsr_how

FSR_INSTRUCTION B64 to_shared(B64 generic, int line = __builtin_LINE()) {
  return fsr_shared_address(reinterpret_cast<const void*>(generic), line);
}
FSR_INSTRUCTION B64 of_shared(B64 address, int line = __builtin_LINE()) {
  return reinterpret_cast<uintptr_t>(fsr_shared_place(address, 0, line));
}

// Where `bytes` at an address lie.
template <Space space, class R>
FSR_INSTRUCTION unsigned char* place(R address, long long offset, unsigned bytes, int line) {
  unsigned char* at;
  if constexpr (space == kShared) {
    at = fsr_shared_place((R)(address + (R)offset), bytes, line);
  } else {
    static_assert(sizeof(R) == 8, "fsr host device: an address of 32 bits outside of shared memory");
    at = reinterpret_cast<unsigned char*>(address + (R)offset);
    if constexpr (space == kGlobal) fsr_global_check(at, line);
  }
  if (__builtin_expect(reinterpret_cast<uintptr_t>(at) % (bytes ? bytes : 1) != 0, 0)) fsr_misaligned(at, bytes);
  return at;
}

// Without the compiler's instrumentation, which would count it a second time.
template <class T>
FSR_INSTRUCTION T fetched(const unsigned char* at) {
  T value;
  __atomic_load(reinterpret_cast<const T*>(at), &value, __ATOMIC_RELAXED);
  return value;
}
template <class T>
FSR_INSTRUCTION void kept(unsigned char* at, T value) {
  __atomic_store(reinterpret_cast<T*>(at), &value, __ATOMIC_RELAXED);
}

// A vector that is strong is one access where it has no more than 8 bytes, as it is on hardware.
template <class T, int n>
constexpr int together = sizeof(T) * n <= 8 ? n : 8 / (int)sizeof(T);

template <class T, int n, Space space, unsigned how, class R>
FSR_INSTRUCTION Several<T, n> ld(R address, long long offset, int line = __builtin_LINE()) {
  constexpr unsigned bytes = sizeof(T) * n;
  static_assert(bytes <= 16, "fsr host device: more than 16 bytes at once");
  const unsigned char* at = place<space>(address, offset, bytes, line);
  Several<T, n> found;
  if constexpr ((how & kStrong) != 0) {
    fsr_yield(line);
    for (int e = 0; e < n; e++) {
      if (e % together<T, n> == 0) fsr_note_strong(at + e * sizeof(T), sizeof(T) * together<T, n>, (how & ~kStrong) | FSR_LOAD, line);
      found.at[e] = fetched<T>(at + e * sizeof(T));
    }
  } else {
    if constexpr ((how & kReadOnly) != 0) fsr_note_read_only(at, bytes, line);
    fsr_note_plain(at, bytes, FSR_LOAD, line);
#ifdef FSR_RECORD
    for (int e = 0; e < n; e++) found.at[e] = fetched<T>(at + e * sizeof(T));
#else
    for (int e = 0; e < n; e++) found.at[e] = reinterpret_cast<const T*>(at)[e];
#endif
  }
  return found;
}

template <class T, int n, Space space, unsigned how, class R>
FSR_INSTRUCTION void st(R address, long long offset, Several<T, n> values, int line = __builtin_LINE()) {
  constexpr unsigned bytes = sizeof(T) * n;
  static_assert(bytes <= 16, "fsr host device: more than 16 bytes at once");
  unsigned char* at = place<space>(address, offset, bytes, line);
  if constexpr ((how & kStrong) != 0) {
    for (int e = 0; e < n; e++) {
      if (e % together<T, n> == 0) fsr_note_strong(at + e * sizeof(T), sizeof(T) * together<T, n>, (how & ~kStrong) | FSR_STORE, line);
      kept(at + e * sizeof(T), values.at[e]);
    }
  } else {
    fsr_note_plain(at, bytes, FSR_STORE, line);
#ifdef FSR_RECORD
    for (int e = 0; e < n; e++) kept(at + e * sizeof(T), values.at[e]);
#else
    for (int e = 0; e < n; e++) reinterpret_cast<T*>(at)[e] = values.at[e];
#endif
  }
}

template <unsigned how>
FSR_INSTRUCTION void fence(int line = __builtin_LINE()) {
  fsr_note_fence(how, line);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

}  // namespace fsr_ptx

inline size_t __cvta_generic_to_shared(const void* at, int line = __builtin_LINE()) { return fsr_shared_address(at, line); }
