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

// Sets grid, block and thread indices; run_blocks() then executes as many blocks as are `wanted`, by default in their
// order (x fastest).
void start_launch(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block, unsigned bytes);
bool shared_overrun();               // the slack behind dynamic shared memory was written; fills `fault`
void next_poison();

}  // namespace fsr
