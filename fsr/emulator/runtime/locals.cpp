// What a thread's arrays cost where a GPU keeps them in local memory: those that the candidate indexes at run time, and
// tells of by fsr_note_local. All else on a stack is taken to be in registers.
//
// Local memory interleaves the threads' words, so that one word of 32 lanes is one line of 128 bytes (CUDA C++
// Programming Guide, "Local Memory"): an access is counted at the place that it would have there.
#include "recorder.h"

namespace fsr {

unsigned local_count;

namespace {

constexpr unsigned kMostLocals = 64;
// From the top of a stack, which all threads fill alike.
struct Local {
  uintptr_t begin;
  unsigned bytes;
} locals[kMostLocals];

uintptr_t from_top(uintptr_t address) { return address - stacks.top(current_stack); }

}  // namespace

void locals_reset() {
  local_count = 0;
  regions[kMaxRegions].space = kLocal;
  regions[kMaxRegions].index = ~0u;
}

void locals_access(uintptr_t address, unsigned bytes, Access access, uintptr_t pc) {
  uintptr_t place = from_top(address);
  for (unsigned i = 0; i < local_count; i++) {
    if (place - locals[i].begin >= locals[i].bytes) continue;
    unsigned part = bytes < 4 ? bytes : 4;
    for (unsigned at = 0; at < bytes; at += part) {
      uintptr_t word = ((place + at) >> 2) & 0xFFFFFF;
      uintptr_t there = word * 4 * kWarp + fsr_thread % kWarp * 4 + ((place + at) & 3);
      statistics_add(&regions[kMaxRegions], there, part, access, pc, 0);
    }
    return;
  }
}

}  // namespace fsr

extern "C" void fsr_note_local(const volatile void* array, unsigned bytes) {
  using namespace fsr;
  uintptr_t at = reinterpret_cast<uintptr_t>(array);
  if (!recording || !stacks.holds(at, current_stack)) return;
  for (unsigned i = 0; i < local_count; i++)
    if (locals[i].begin == from_top(at) && locals[i].bytes == bytes) return;
  if (local_count < kMostLocals) locals[local_count++] = {from_top(at), bytes};
}
