// What a thread knows of other threads' accesses: which of them happen before whatever it does next.
//
// A view says of blocks up to which barrier, and of single threads up to which point, their accesses are known. Views
// never change once made; a bump allocator holds them and is emptied with every launch.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fsr {

struct Known {
  uint64_t who;   // block << 11 | thread + 1; thread part 0: all threads of the block
  uint64_t upto;  // of all: epochs before this one; of a thread: epoch << 32 | clock, and including it
};
inline uint64_t name_thread(uint64_t block, uint32_t thread) { return block << 11 | (thread + 1); }

struct View {
  uint32_t count;
  Known known[1];
};

View* join(View* a, View* b);            // null: knows nothing
View* learn(View* a, const Known* added, unsigned count);  // `added` is sorted by `who`
bool covers(const View* view, uint64_t block, uint32_t thread, uint32_t epoch, uint32_t clock);
void forget_views();
bool views_exhausted();  // no memory for more: nothing can be told any longer

// Fixed-size hash table from nonzero keys; `fit` is null when it is full and the key is new.
template <class Value, unsigned Bits>
struct Table {
  struct Slot {
    uint64_t key;
    Value value;
  };
  Slot slots[1u << Bits];
  unsigned count;

  Value* find(uint64_t key, bool make) {
    constexpr unsigned kMask = (1u << Bits) - 1;
    for (unsigned at = static_cast<unsigned>(key * 0x9E3779B97F4A7C15ull >> (64 - Bits));; at = (at + 1) & kMask) {
      Slot& s = slots[at];
      if (s.key == key) return &s.value;
      if (s.key) continue;
      if (!make || count > kMask / 4 * 3) return nullptr;
      count++;
      s.key = key;
      return &s.value;
    }
  }
  void clear() {
    if (count) __builtin_memset(slots, 0, sizeof slots);
    count = 0;
  }
};

}  // namespace fsr
