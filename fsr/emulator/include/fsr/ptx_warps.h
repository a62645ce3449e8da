// PTX's instructions among threads: shuffles, elections, barriers; votes, matches and reductions are CUDA's own functions.
#pragma once
#include "barriers.h"
#include "ptx_registers.h"
#include "services.h"
#include "warp.h"

namespace fsr_ptx {

enum Shuffle { k_up, k_down, k_bfly, k_idx };

// PTX ISA 8.7, "shfl.sync": c holds the last lane of a segment and, from bit 8, which bits of a lane name its segment.
template <Shuffle mode>
FSR_INSTRUCTION B32 shfl(B32 value, B32 b, B32 c, B32 members, bool& found, int line = __builtin_LINE()) {
  int lane = (int)fsr_lane(), step = (int)(b & 31), segment = (int)(c >> 8 & 31);
  int last = (lane & segment) | ((int)(c & 31) & ~segment), source;
  if constexpr (mode == k_up)
    source = lane - step, found = source >= last;
  else if constexpr (mode == k_down)
    source = lane + step, found = source <= last;
  else if constexpr (mode == k_bfly)
    source = lane ^ step, found = source <= last;
  else
    source = (lane & segment) | (step & ~segment), found = source <= last;
  return fsr::exchange(members, value, (unsigned)(found ? source : lane), line);
}

FSR_INSTRUCTION B32 elect(B32 members, bool& chosen, int line = __builtin_LINE()) {
  B32 first = (B32)__builtin_ctz(fsr_ballot(members, 1, line));
  chosen = first == fsr_lane();
  return first;
}

// Number 0 for all threads is __syncthreads().
FSR_INSTRUCTION bool of_block(B32 name, B32 threads) {
  return name == 0 && (threads == 0 || threads == blockDim.x * blockDim.y * blockDim.z);
}
FSR_INSTRUCTION void whole_block(B32 name, B32 threads = 0, int line = __builtin_LINE()) {
  if (!of_block(name, threads)) fsr_unsupported("bar.red of some threads of a block, or with a number", line);
}
FSR_INSTRUCTION void barrier(B32 name, B32 threads = 0, int line = __builtin_LINE()) {
  if (of_block(name, threads)) return fsr_syncthreads(line);
  fsr_named_barrier(name, threads, true, line);
}
FSR_INSTRUCTION void arrive(B32 name, B32 threads, int line = __builtin_LINE()) {
  if (name == 0) fsr_unsupported("bar.arrive at barrier 0", line);
  fsr_named_barrier(name, threads, false, line);
}

}  // namespace fsr_ptx
