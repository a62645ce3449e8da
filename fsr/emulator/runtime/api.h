// Between the launcher and the recorder.
#pragma once
#include "state.h"

namespace fsr {

// The thread-local segment that holds all static __shared__ variables of the unit, and the unit itself.
struct SharedSegment {
  unsigned char* base = nullptr;
  size_t bytes = 0;
  uintptr_t image = 0, image_end = 0;
};
extern SharedSegment shared_segment;

// Sets grid, block and thread indices; blocks are then run one by one, by linear index (x fastest), in any order.
void start_launch(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block, unsigned bytes);
bool run_block_at(uint64_t linear);  // false: `fault` says why not
bool shared_overrun();               // the slack behind dynamic shared memory was written; fills `fault`
void next_poison();

}  // namespace fsr
