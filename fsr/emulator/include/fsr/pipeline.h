// Asynchronous copies from global to shared memory: <cuda_pipeline_primitives.h>.
#pragma once
#include "runtime.h"

inline __attribute__((always_inline)) void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes,
                                                                   size_t zeros = 0, int line = __builtin_LINE()) {
  fsr_async_check(shared, global, bytes, zeros, line);
  fsr_note_plain(global, (unsigned)(bytes - zeros), FSR_LOAD, line);
  fsr_note_plain(shared, (unsigned)bytes, FSR_STORE, line);
  fsr_async_copy(shared, global, bytes, zeros);
}
inline void __pipeline_commit() { fsr_async_commit(); }
inline void __pipeline_wait_prior(size_t prior, int line = __builtin_LINE()) { fsr_async_wait(prior, line); }
