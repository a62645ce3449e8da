// Stacks for parked CUDA threads and the switch between them.
#pragma once
#include <cstddef>
#include <cstdint>

// Saves the callee-saved registers on the current stack, stores its pointer in *save and continues on `to`.
// MXCSR and the x87 control word are not saved: device code cannot change them.
extern "C" void fsr_switch(void** save, void* to);

namespace fsr {

constexpr unsigned kMaxStacks = 16384;

// The pool of stacks: `count` of them, `stride` bytes apart; the lowest page of each is a guard page.
// The child process maps it once for all images it loads, with guard pages below the first 1024.
struct StackPool {
  unsigned char* base = nullptr;
  size_t stride = 0;
  unsigned count = 0;

  bool holds(uintptr_t address) const {
    return address - reinterpret_cast<uintptr_t>(base) < stride * static_cast<size_t>(count);
  }
  // Whether an address is on one stack: the others, gigabytes of addresses, are nobody's to reach.
  bool holds(uintptr_t address, unsigned index) const {
    return address - reinterpret_cast<uintptr_t>(base) - stride * index < stride;
  }
  // Where a stack begins. Tops are staggered, or the hot ends of 1024 stacks would all fall into the same cache sets.
  uintptr_t top(unsigned index) const {
    return (reinterpret_cast<uintptr_t>(base) + stride * (index + 1) - (index % 16) * 192) & ~uintptr_t{63};
  }
  // A stack pointer from which fsr_switch starts `entry`.
  void* fresh(unsigned index, void (*entry)()) const {
    void** sp = reinterpret_cast<void**>(top(index));
    *--sp = nullptr;  // return address of entry, which never returns; keeps the ABI's alignment
    *--sp = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; i++) *--sp = nullptr;
    return sp;
  }
};

// Guard pages below `count` more stacks.
void open_stacks(const StackPool& pool, unsigned first, unsigned count);

}  // namespace fsr
