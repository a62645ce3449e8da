// Shadow memory: which bytes are defined, who touched them last, and whether an access races with that.
//
// Order inside a block comes from barriers (epochs) and, inside a warp, from vector clocks that warp-level
// synchronisation joins. Blocks of a launch are unordered, unless data is handed over with a fence and an atomic.
// A write that leaves the value as it was is no race: several threads may store the same result.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "recorder.h"

namespace fsr {

Region regions[kMaxRegions];
unsigned region_count;

namespace {

FoundFault faults[kMaxFaults];
unsigned fault_count;

uint32_t epoch = 1, block_epoch = 1, launch_epoch = 1;
uint32_t clocks[kMaxThreads][kWarp];  // clocks[t][l]: what thread t knows of lane l of its warp
bool clocks_used = true;
uint32_t fenced[kMaxThreads];  // epoch of the thread's last fence
bool launch_fenced, block_acquired;

struct Pending {
  Region* region;
  uintptr_t address, pc;
  unsigned bytes;
  int line;
  Stamp other;
  const char* text;
  unsigned thread;
  unsigned char before[16];
} pending;

template <class T>
T* lazily(size_t count) {
  void* p = mmap(nullptr, count * sizeof(T) + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<T*>(p);
}

size_t cell_count(const Region& r) { return (r.capacity >> r.shift) + 2; }

void free_region(Region& r) {
  if (r.cells) munmap(r.cells, cell_count(r) * sizeof(Cell) + 64);
  if (r.defined) munmap(r.defined, r.capacity / 8 + 2 + 64);
  r.cells = nullptr;
  r.defined = nullptr;
}

// Smaller accesses than the cells stand for: start again with a cell a byte. The history is lost, which can hide a
// race of the first few accesses and never invents one.
void refine(Region& r) {
  if (r.cells) munmap(r.cells, cell_count(r) * sizeof(Cell) + 64);
  r.shift = 0;
  r.cells = lazily<Cell>(cell_count(r));
}

bool ordered(const Region& r, Stamp s) {
  if (!s) return true;
  uint32_t when = epoch_of(s), who = thread_of(s);
  if (when < block_epoch) return when < launch_epoch || r.space == kShared || block_acquired;
  if (when < epoch || who == fsr_thread) return true;
  if (who / kWarp == fsr_thread / kWarp && clocks[fsr_thread][who % kWarp] >= clock_of(s)) return true;
  return fenced[who] == epoch;
}

void check_defined(Region& r, uintptr_t address, unsigned bytes, uintptr_t pc, int line) {
  size_t at = address - r.begin;
  for (unsigned i = 0; i < bytes; i++) {
    uint8_t& byte = r.defined[(at + i) / 8];
    uint8_t bit = static_cast<uint8_t>(1u << ((at + i) % 8));
    if (byte & bit) continue;
    report(3, &r, address + i, pc, line, 0, "read before anything was written there");
    byte |= bit;
  }
}

void define(Region& r, uintptr_t address, unsigned bytes) {
  size_t at = address - r.begin;
  for (unsigned i = 0; i < bytes; i++) r.defined[(at + i) / 8] |= static_cast<uint8_t>(1u << ((at + i) % 8));
}

bool all_defined(const Region& r, uintptr_t address, unsigned bytes) {
  size_t at = address - r.begin;
  if (bytes > 8 || at % 8 + bytes > 8) return false;
  unsigned mask = ((1u << bytes) - 1) << (at % 8);
  return (r.defined[at / 8] & mask) == mask;
}

void postpone(Region* r, uintptr_t address, unsigned bytes, uintptr_t pc, int line, Stamp other, const char* text) {
  pending = {r, address, pc, bytes > 16 ? 16 : bytes, line, other, text, fsr_thread, {}};
  std::memcpy(pending.before, reinterpret_cast<const void*>(address), pending.bytes);
}

}  // namespace

uint64_t fault_address_offset(uintptr_t pc) {
  // A return address belongs to the instruction after the call; one less lies in the call.
  return pc > shared_segment.image && pc < shared_segment.image_end ? pc - 1 - shared_segment.image : 0;
}

void report(int kind, const Region* region, uintptr_t address, uintptr_t pc, int line, Stamp other, const char* text) {
  for (unsigned i = 0; i < fault_count; i++)
    if (faults[i].kind == kind && faults[i].pc == fault_address_offset(pc)) return;
  if (fault_count == kMaxFaults) return;
  FoundFault& f = faults[fault_count++];
  f = FoundFault{};
  f.kind = kind;
  f.line = line;
  f.pc = fault_address_offset(pc);
  f.address = region ? address - region->begin : address;
  f.region = region ? static_cast<int32_t>(region->index) : -1;
  f.thread = fsr_thread;
  f.other = thread_of(other);
  f.other_earlier_block = other && epoch_of(other) < block_epoch;
  name_block(f.block);
  std::snprintf(f.text, sizeof f.text, "%s", text);
}

Region* find_region(uintptr_t address, size_t bytes) {
  unsigned low = 0, high = region_count;  // the first region that ends behind the address
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (regions[middle].end > address) high = middle;
    else low = middle + 1;
  }
  if (low == region_count || regions[low].begin > address || regions[low].end < address + bytes) return nullptr;
  return &regions[low];
}

void shadow_reset() {
  for (unsigned i = 0; i < region_count; i++) free_region(regions[i]);
  region_count = 0;
  fault_count = 0;
  pending.region = nullptr;
}

void shadow_launch_start() {
  launch_epoch = ++epoch;
  launch_fenced = false;
}

void shadow_block_start() {
  block_epoch = ++epoch;
  block_acquired = false;
  if (clocks_used) {
    std::memset(clocks, 0, sizeof clocks);
    for (unsigned t = 0; t < kMaxThreads; t++) clocks[t][t % kWarp] = 1;
    clocks_used = false;
  }
  for (unsigned i = 0; i < region_count; i++) {
    Region& r = regions[i];
    if (r.space == kShared && r.defined) std::memset(r.defined, 0, (r.end - r.begin) / 8 + 1);
  }
}

void shadow_barrier() {
  settle();
  epoch++;
}

void shadow_release(unsigned warp, uint32_t lanes) {
  settle();
  clocks_used = true;
  for (uint32_t rest = lanes; rest;) {
    uint32_t group = threads[warp * kWarp + static_cast<unsigned>(__builtin_ctz(rest))].mask & rest;
    if (!group) return;
    uint32_t joined[kWarp] = {};
    for (uint32_t g = group; g; g &= g - 1) {
      const uint32_t* known = clocks[warp * kWarp + static_cast<unsigned>(__builtin_ctz(g))];
      for (unsigned l = 0; l < kWarp; l++) joined[l] = known[l] > joined[l] ? known[l] : joined[l];
    }
    for (uint32_t g = group; g; g &= g - 1) {
      unsigned lane = static_cast<unsigned>(__builtin_ctz(g));
      std::memcpy(clocks[warp * kWarp + lane], joined, sizeof joined);
      clocks[warp * kWarp + lane][lane]++;
    }
    rest &= ~group;
  }
}

void shadow_fence() {
  fenced[fsr_thread] = epoch;
  launch_fenced = true;
}

void shadow_global_atomic() { block_acquired |= launch_fenced; }

void settle() {
  if (!pending.region) return;
  Region* region = pending.region;
  pending.region = nullptr;
  if (!std::memcmp(pending.before, reinterpret_cast<const void*>(pending.address), pending.bytes)) return;
  unsigned running = fsr_thread;
  fsr_thread = pending.thread;
  report(2, region, pending.address, pending.pc, pending.line, pending.other, pending.text);
  fsr_thread = running;
}

void shadow_access(Region* region, uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line) {
  Region& r = *region;
  if (r.defined && r.check_defined) {
    if (access != kWrite && !all_defined(r, address, bytes)) check_defined(r, address, bytes, pc, line);
    if (access != kRead) define(r, address, bytes);
  }
  size_t at = address - r.begin;
  if (r.shift && ((at | bytes) & ((1u << r.shift) - 1))) refine(r);
  if (!r.cells) return;
  Stamp now = make_stamp(epoch, clocks[fsr_thread][fsr_thread % kWarp], fsr_thread, access == kAtomic);
  Cell* last = r.cells + ((at + bytes - 1) >> r.shift);
  for (Cell* c = r.cells + (at >> r.shift); c <= last; c++) {
    bool after_write = !ordered(r, c->write) && !(access == kAtomic && atomic_of(c->write));
    if (access == kRead) {
      if (after_write) report(2, &r, address, pc, line, c->write, "reads what another thread writes, with no barrier between");
      if (epoch_of(c->read) == epoch && thread_of(c->read) != fsr_thread) {
        c->other_read = now;
      } else {
        if (epoch_of(c->read) < block_epoch) c->earlier_read = c->read;
        c->read = now;
      }
      continue;
    }
    Stamp reader = !ordered(r, c->read)           ? c->read
                   : !ordered(r, c->other_read)   ? c->other_read
                   : !ordered(r, c->earlier_read) ? c->earlier_read
                                                  : 0;
    if (after_write && access == kAtomic)
      report(2, &r, address, pc, line, c->write, "atomic update of what another thread writes plainly");
    else if (after_write)
      postpone(&r, address, bytes, pc, line, c->write, "writes another value than another thread, with no barrier between");
    else if (reader)
      postpone(&r, address, bytes, pc, line, reader, "writes what another thread reads, with no barrier between");
    c->write = now;
  }
}

}  // namespace fsr

using namespace fsr;

extern "C" {

__attribute__((visibility("default"))) int fsr_record_region(uintptr_t begin, size_t bytes, uint32_t space,
                                                             uint32_t index, uint32_t shift, int check_defined) {
  if (region_count == kMaxRegions) return 0;
  unsigned at = region_count;  // sorted by address
  while (at > 0 && regions[at - 1].begin > begin) regions[at] = regions[at - 1], at--;
  Region& r = regions[at];
  r = Region{begin, begin + bytes, space, index, shift, check_defined != 0, nullptr, nullptr, bytes};
  r.cells = lazily<Cell>(cell_count(r));
  if (check_defined) r.defined = lazily<uint8_t>(bytes / 8 + 2);
  region_count++;
  return 1;
}

__attribute__((visibility("default"))) unsigned fsr_record_faults(const FoundFault** rows) {
  *rows = faults;
  return fault_count;
}
}
