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
inline void __threadfence(int line = __builtin_LINE()) {
  fsr_note_fence(line);
  __asm__ volatile("" ::: "memory");
}
inline void __threadfence_block(int line = __builtin_LINE()) { __threadfence(line); }
inline void __threadfence_system(int line = __builtin_LINE()) { __threadfence(line); }
