// PTX's cp.async of 4, 8 or 16 bytes: see fsr/emulator/runtime/async.cpp for when they are complete.
#pragma once
#include "pipeline.h"
#include "ptx_memory.h"

namespace fsr_ptx {

template <bool past_l1, class S, class G>
FSR_INSTRUCTION void copy(S to, long long to_offset, G of, long long of_offset, B32 bytes, B32 kept, int line = __builtin_LINE()) {
  if (past_l1 && bytes != 16) fsr_trap("cp.async.cg copies 16 bytes", line);
  if (kept > bytes) fsr_trap("cp.async reads more bytes than it copies", line);
  void* shared = place<kShared>(to, to_offset, bytes, line);
  __pipeline_memcpy_async(shared, reinterpret_cast<const void*>(of + (G)of_offset), bytes, bytes - kept, line);
}
FSR_INSTRUCTION void copies_commit() { __pipeline_commit(); }
FSR_INSTRUCTION void copies_wait(B32 prior, int line = __builtin_LINE()) { __pipeline_wait_prior(prior, line); }
FSR_INSTRUCTION void copies_wait_all(int line = __builtin_LINE()) {
  __pipeline_commit();
  __pipeline_wait_prior(0, line);
}

}  // namespace fsr_ptx
