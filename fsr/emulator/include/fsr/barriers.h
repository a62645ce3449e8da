// Block barriers, warp barriers and memory fences.
#pragma once
#include "runtime.h"

inline void __syncthreads(int line = __builtin_LINE()) { fsr_syncthreads(line); }
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return fsr_syncthreads_count(predicate, line);
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) { return fsr_syncthreads_and(predicate, line); }
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) { return fsr_syncthreads_or(predicate, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) { fsr_syncwarp(mask, line); }

// One thread runs at a time and sees all earlier writes: a fence holds the compiler back and tells the recorder.
#define FSR_FENCE(name, scope)                                                                      \
  inline void name(int line = __builtin_LINE()) {                                                   \
    fsr_note_fence(FSR_ACQUIRE | FSR_RELEASE | FSR_SEQUENTIAL | (scope), line);                     \
    __asm__ volatile("" ::: "memory");                                                              \
  }
FSR_FENCE(__threadfence, 0)
FSR_FENCE(__threadfence_block, FSR_BLOCK)
FSR_FENCE(__threadfence_system, 0)
#undef FSR_FENCE
