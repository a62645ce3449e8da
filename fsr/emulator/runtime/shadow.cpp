// Shadow memory: which bytes are defined, who touched them last, and whether an access races with that.
//
// Two accesses of different threads, one of them a write, race unless one happened before the other (order.cpp) or both
// are strong at scopes that hold both threads. A write that leaves the value as it was is no race: several threads may
// store the same result.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "knowledge.h"
#include "recorder.h"

namespace fsr {

Region regions[kMaxRegions + 1];
unsigned region_count;

namespace {

FoundFault faults[kMaxFaults];

// A plain load that races with an update (a read-modify-write) is what loops of compare-and-swap begin with, also in
// CUDA's guide: the update finds out whether the value still stands. So such loads are good where threads go on from
// them to update the same place, even if not all do.
Table<FoundFault, 12> doubts;
Table<uint64_t, 10> made_good;  // places in the code, from 1
constexpr unsigned kLoads = 8;
struct Load {
  uintptr_t address, pc;
} loads[kMaxFlights][kMaxThreads][kLoads];
unsigned load_count;
unsigned fault_count;

struct Pending {
  Region* region;
  uintptr_t address, pc;
  unsigned bytes;
  int line;
  Earlier other;
  const char* text;
  unsigned thread;
  unsigned char before[16];
  bool update;
} pending;

// A value that a load is shown although memory holds another.
struct Shown {
  uintptr_t address;
  unsigned bytes;
  unsigned char held[8];
} shown;

template <class T>
T* lazily(size_t count) {
  void* p = mmap(nullptr, count * sizeof(T) + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<T*>(p);
}

size_t cell_count(const Region& r) { return (r.capacity >> r.shift) + 2; }

void free_cells(Region& r, Cell*& cells) {
  if (cells) munmap(cells, cell_count(r) * sizeof(Cell) + 64);
  cells = nullptr;
}

void free_region(Region& r) {
  free_cells(r, r.cells);
  if (r.defined) munmap(r.defined, r.capacity / 8 + 2 + 64);
  r.defined = nullptr;
  for (unsigned i = 0; r.aside && i < kMaxFlights; i++) {
    free_cells(r, r.aside[i].cells);
    if (r.aside[i].defined) munmap(r.aside[i].defined, r.capacity / 8 + 2 + 64);
  }
  std::free(r.aside);
  r.aside = nullptr;
}

// Smaller accesses than the cells stand for: start again with a cell a byte. The history is lost, which can hide a
// race of the first few accesses and never invents one.
void refine(Region& r) {
  free_cells(r, r.cells);
  for (unsigned i = 0; r.aside && i < kMaxFlights; i++) free_cells(r, r.aside[i].cells);
  r.shift = 0;
  r.cells = lazily<Cell>(cell_count(r));
}

// The blocks' own shadows of shared memory change places with the memory itself.
void put_aside(Region& r) {
  if (!r.aside) r.aside = static_cast<Shadow*>(std::calloc(kMaxFlights, sizeof(Shadow)));
  if (!r.aside) return;
  r.aside[flight->slot] = {r.cells, r.defined};
  r.cells = nullptr;
  r.defined = nullptr;
}

void take_back(Region& r) {
  Shadow own = r.aside ? r.aside[flight->slot] : Shadow{};
  r.cells = own.cells ? own.cells : lazily<Cell>(cell_count(r));
  r.defined = own.defined || !r.check_defined ? own.defined : lazily<uint8_t>(r.capacity / 8 + 2);
  if (r.aside) r.aside[flight->slot] = {};
}

void check_defined(Region& r, uintptr_t address, unsigned bytes, uintptr_t pc, int line) {
  size_t at = address - r.begin;
  for (unsigned i = 0; i < bytes; i++) {
    uint8_t& byte = r.defined[(at + i) / 8];
    uint8_t bit = static_cast<uint8_t>(1u << ((at + i) % 8));
    if (byte & bit) continue;
    report(kUninitialised, &r, address + i, pc, line, 0, "read before anything was written there");
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

bool morally_strong(Stamp a, Stamp b) {
  if (block_of(a) == block_of(b)) return strength_of(a) && strength_of(b);
  return strength_of(a) == kOnDevice && strength_of(b) == kOnDevice;
}

}  // namespace

uint64_t fault_address_offset(uintptr_t pc) {
  // A return address belongs to the instruction after the call; one less lies in the call.
  return pc > shared_segment.image && pc < shared_segment.image_end ? pc - 1 - shared_segment.image : 0;
}

namespace {

void keep(const FoundFault& fault) {
  for (unsigned i = 0; i < fault_count; i++)
    if (faults[i].kind == fault.kind && faults[i].pc == fault.pc) return;
  if (fault_count < kMaxFaults) faults[fault_count++] = fault;
}

uint32_t place_of(uintptr_t pc, int line) {
  uint64_t offset = fault_address_offset(pc);
  return line > 0 ? 1u << 31 | static_cast<uint32_t>(line) : offset < 1u << 31 ? static_cast<uint32_t>(offset) : 0;
}

FoundFault found(int kind, const Region* region, uintptr_t address, uintptr_t pc, int line, Earlier other,
                 const char* text) {
  FoundFault f{};
  f.kind = kind;
  f.line = line;
  f.pc = fault_address_offset(pc);
  f.address = region ? address - region->begin : address;
  f.region = region ? static_cast<int32_t>(region->index) : -1;
  f.thread = fsr_thread;
  f.other = thread_of(other.stamp);
  f.other_earlier_block = other.stamp && block_of(other.stamp) != block_of(now(kWeak, false));
  f.other_at = other.at;
  name_block(f.block);
  std::snprintf(f.text, sizeof f.text, "%s", text);
  return f;
}

}  // namespace

void report(int kind, const Region* region, uintptr_t address, uintptr_t pc, int line, Earlier other, const char* text) {
  keep(found(kind, region, address, pc, line, other, text));
}

void settle_doubts() {
  for (auto& slot : doubts.slots)
    if (doubts.count && slot.value.kind && !made_good.find(slot.value.pc + 1, false)) keep(slot.value);
  doubts.clear();
  made_good.clear();
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
  shown.address = 0;
  doubts.clear();
  made_good.clear();
  order_reset();
}

void shadow_launch_start() {
  settle();
  order_launch_start();
}

void shadow_block_start() {
  order_block_start();
  for (unsigned i = 0; i < region_count; i++) {
    Region& r = regions[i];
    if (r.space != kShared) continue;
    if (!r.cells) take_back(r);
    if (r.defined) std::memset(r.defined, 0, (r.end - r.begin) / 8 + 1);
  }
}

void shadow_leave() {
  settle();
  for (unsigned i = 0; i < region_count; i++)
    if (regions[i].space == kShared) put_aside(regions[i]);
}

void shadow_enter() {
  for (unsigned i = 0; i < region_count; i++)
    if (regions[i].space == kShared) take_back(regions[i]);
  order_enter();
}

void shadow_barrier() {
  settle();
  order_barrier();
}

void shadow_release(unsigned warp, uint32_t lanes) {
  settle();
  order_warp(warp, lanes);
}

void settle() {
  if (shown.address) {
    std::memcpy(reinterpret_cast<void*>(shown.address), shown.held, shown.bytes);
    shown.address = 0;
  }
  if (!pending.region) return;
  Region* region = pending.region;
  pending.region = nullptr;
  if (!std::memcmp(pending.before, reinterpret_cast<const void*>(pending.address), pending.bytes)) return;
  if (!pending.text) return progress();
  unsigned running = fsr_thread;
  fsr_thread = pending.thread;
  report(kRace, region, pending.address, pending.pc, pending.line, pending.other, pending.text);
  fsr_thread = running;
}

namespace {

// A load that nothing orders after the last store may be shown what was there before it.
bool show_stale(uintptr_t address, bool shared, unsigned bytes) {
  unsigned char value[8];
  if (bytes > 8 || !stale_value(address, shared, bytes, value)) return false;
  shown = {address, bytes, {}};
  std::memcpy(shown.held, reinterpret_cast<const void*>(address), bytes);
  std::memcpy(reinterpret_cast<void*>(address), value, bytes);
  return true;
}

// A race between a plain load of `reader` and an update: kept in mind until it is made good, or the launch ends.
void doubt(uint64_t reader, const FoundFault& fault) {
  if (FoundFault* kept = doubts.find(reader, true)) *kept = fault;
  else keep(fault);
}

// Where in the code a thread loaded from an address, if that is not long ago.
uintptr_t pc_of_load(uintptr_t address, Stamp whose) {
  for (unsigned slot = 0; slot < kMaxFlights; slot++)
    if (block_in(slot) == block_of(whose))
      for (const Load& load : loads[slot][thread_of(whose)])
        if (load.address == address) return load.pc;
  return 0;
}

bool own(Stamp a, Stamp b) { return block_of(a) == block_of(b) && thread_of(a) == thread_of(b); }

void note_read(Region& r, Cell& c, Stamp stamp, uintptr_t address, uintptr_t pc, int line) {
  if (read_only_of(stamp) && c.write && !earlier_launch(c.write))
    report(kUndefined, &r, address, pc, line, {c.write, c.write_at}, "read through the read-only cache, though this launch writes it");
  if (!happened_before(c.write, r.space == kShared) && !morally_strong(c.write, stamp))
  {
    FoundFault race = found(kRace, &r, address, pc, line, {c.write, c.write_at},
                            "reads what another thread writes, and nothing orders the two");
    if (strength_of(c.write) && !strength_of(stamp)) doubt(place_and_thread(address, r.space == kShared, stamp), race);
    else keep(race);
  }
  Stamp last = c.read;
  uint32_t at = place_of(pc, line);
  if (block_of(last) == block_of(stamp) && epoch_of(last) == epoch_of(stamp) && thread_of(last) != thread_of(stamp)) {
    c.other_read = stamp, c.other_read_at = at;
    return;
  }
  if (block_of(last) != block_of(stamp)) c.earlier_read = last, c.earlier_read_at = c.read_at;
  c.read = stamp, c.read_at = at;
}

void note_write(Region& r, Cell& c, Stamp stamp, const Pending& as) {
  bool after_write = !happened_before(c.write, r.space == kShared) && !morally_strong(c.write, stamp);
  Earlier reader;
  uint32_t here = place_of(as.pc, as.line);
  bool update = as.update, shared = r.space == kShared;
  if (update) {
    if (FoundFault* kept = doubts.find(place_and_thread(as.address, shared, stamp), false)) kept->kind = 0;
    for (const Load& load : loads[flight->slot][fsr_thread])
      if (load.address == as.address) made_good.find(fault_address_offset(load.pc) + 1, true);
  }
  const std::pair<Stamp*, uint32_t> readers[] = {
      {&c.read, c.read_at}, {&c.other_read, c.other_read_at}, {&c.earlier_read, c.earlier_read_at}};
  for (auto [at, place] : readers) {
    Stamp s = *at;
    if (read_only_of(s) && !earlier_launch(s))
      report(kUndefined, &r, as.address, as.pc, as.line, {s, place}, "writes what this launch reads through the read-only cache");
    if (update && own(s, stamp) && !strength_of(s)) *at = 0;
    else if (happened_before(s, shared) || morally_strong(s, stamp)) continue;
    else if (uintptr_t pc = update && !strength_of(s) ? pc_of_load(as.address, s) : 0)
      doubt(place_and_thread(as.address, shared, s),
            found(kRace, &r, as.address, pc, 0, {s, here}, "reads what another thread updates, and nothing orders the two"));
    else reader = {s, place};
  }
  const char* text = after_write    ? "writes another value than another thread, and nothing orders the two"
                     : reader.stamp ? "writes what another thread reads, and nothing orders the two"
                                    : nullptr;
  if (text && !(pending.region && pending.text)) {
    pending = as;
    pending.text = text;
    pending.other = after_write ? Earlier{c.write, c.write_at} : reader;
  }
  c.write = stamp, c.write_at = here;
}

}  // namespace

void shadow_access(Region* region, uintptr_t address, unsigned bytes, Access access, Manner manner, uintptr_t pc,
                   int line) {
  Region& r = *region;
  if (r.defined && r.check_defined) {
    if (access != kWrite && !all_defined(r, address, bytes)) check_defined(r, address, bytes, pc, line);
    if (access != kRead) define(r, address, bytes);
  }
  if (r.read_only && access != kRead) report(kInputChanged, &r, address, pc, line, 0, "an input is written");
  r.updated |= access == kAtomic;
  size_t at = address - r.begin;
  if (r.shift && ((at | bytes) & ((1u << r.shift) - 1))) refine(r);
  if (!r.cells) return;
  Stamp stamp = now(manner.strength(), manner.read_only);
  Cell* first = r.cells + (at >> r.shift);
  Cell* last = r.cells + ((at + bytes - 1) >> r.shift);
  if (access == kRead) {
    if (!manner.bits && (order.watched || r.updated)) loads[flight->slot][fsr_thread][load_count++ % kLoads] = {address, pc};
    for (Cell* c = first; c <= last; c++) note_read(r, *c, stamp, address, pc, line);
  } else {
    Pending as{region, address, pc, bytes > 16 ? 16 : bytes, line, 0, nullptr, fsr_thread, {}, access == kAtomic};
    std::memcpy(as.before, reinterpret_cast<const void*>(address), as.bytes);
    if (order.watched) pending = as;  // whether anything changes is what waiting threads wait for
    for (Cell* c = first; c <= last; c++) note_write(r, *c, stamp, as);
  }
  if (!manner.bits) return;
  bool shared = r.space == kShared;
  if (access == kRead && order.stale && show_stale(address, shared, bytes)) return;
  order_strong(address, shared, bytes, access, manner.bits);
}

}  // namespace fsr

using namespace fsr;

extern "C" {

__attribute__((visibility("default"))) int fsr_record_region(uintptr_t begin, size_t bytes, uint32_t space,
                                                             uint32_t index, uint32_t shift, int check_defined, int read_only) {
  if (region_count == kMaxRegions) return 0;
  unsigned at = region_count;  // sorted by address
  while (at > 0 && regions[at - 1].begin > begin) regions[at] = regions[at - 1], at--;
  Region& r = regions[at];
  r = Region{begin, begin + bytes, space, index, shift, check_defined != 0, read_only != 0, false, nullptr, nullptr, bytes, nullptr};
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
