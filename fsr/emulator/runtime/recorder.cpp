// Where the instrumentation arrives: our own implementation of the callbacks that -fsanitize=thread,
// -fsanitize=bounds and -fsanitize-coverage=trace-pc insert, and the recorded launch.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "recorder.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER reinterpret_cast<uintptr_t>(__builtin_return_address(0))

namespace fsr {

bool recording;

namespace {

uint64_t accesses;

[[noreturn]] void out_of_bounds(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line) {
  char text[160];
  std::snprintf(text, sizeof text, "%s of %u bytes", access == kRead ? "read" : access == kWrite ? "write" : "atomic",
                bytes);
  report(kBounds, nullptr, address, pc, line, 0, text);
  raise(kOutOfBounds, line, "%s", text);  // the access itself would corrupt memory or kill the process
}

// The region of an access; null for what the compiler and the runtime made. State that the candidate declared outlives
// the launch: `watched` recordings tell of writes to it.
Region* region_of(uintptr_t address, unsigned bytes, Access kind, uintptr_t pc, int line) {
  static Region* last;
  if (last && last < regions + region_count && address >= last->begin && address + bytes <= last->end) return last;
  Region* region = find_region(address, bytes);
  bool in_image = address >= shared_segment.image && address < shared_segment.image_end;
  bool dynamic = address - reinterpret_cast<uintptr_t>(fsr_dynamic_shared) < kDynamicShared;
  if (!region && !(in_image && !dynamic)) out_of_bounds(address, bytes, kind, pc, line);
  if (kind != kRead && order.watched && (!region || region->space == kImageData))
    report(kState, region, address, pc, line, 0, "a variable that outlives the launch is written");
  if (region && region->space != kImageData) last = region;
  return region;
}

inline void access(uintptr_t address, unsigned bytes, Access kind, Manner manner, uintptr_t pc, int line) {
  if (!recording) return;
  if (stacks.holds(address, current_stack)) {
    if (local_count && !order.watched) locals_access(address, bytes, kind, pc), accesses++;
    return;
  }
  settle();
  Region* region = region_of(address, bytes, kind, pc, line);
  if (!region) return;
  if (manner.aligned && address & ((bytes > 8 ? 8 : bytes) - 1))
    report(kMisaligned, region, address, pc, line, 0, "an access that is not aligned to its width");
  if (order.watched && region->space != kShared) {
    give_way();
    settle();
  }
  if (++accesses > order.budget && order.budget) wanted = limit = issued;
  if (!order.watched) statistics_add(region, address, bytes, kind, pc, line);
  shadow_access(region, address, bytes, kind, manner, pc, line);
}

void range(uintptr_t address, size_t bytes, Access kind, uintptr_t pc) {
  if (!recording || stacks.holds(address, current_stack)) return;
  while (bytes) {
    unsigned part = bytes >= 16 ? 16 : bytes >= 8 ? 8 : bytes >= 4 ? 4 : 1;
    access(address, part, kind, {}, pc, 0);
    address += part;
    bytes -= part;
  }
}

// Volatile accesses are relaxed ones at system scope (PTX ISA, ld.volatile); a loop of them may be waiting.
void volatile_access(void* p, unsigned bytes, Access kind, uintptr_t pc) {
  if (kind == kRead && !stacks.holds(reinterpret_cast<uintptr_t>(p), current_stack)) fsr_yield(0);
  access(reinterpret_cast<uintptr_t>(p), bytes, kind, {FSR_STRONG}, pc, 0);
}

}  // namespace

void recorder_block_start() {
  if (!recording) return;
  shadow_block_start();
  statistics_block_start();
}
void recorder_barrier() {
  if (!recording) return;
  shadow_barrier();
  statistics_flush();
}
void recorder_grid_barrier() {
  if (!recording) return;
  settle();
  order_grid_barrier();
}
// What all have done before they arrived happens before what those that waited do next.
void recorder_named(const Named* at, bool arrives) {
  if (!recording) return;
  settle();
  uint32_t bits = FSR_STRONG | FSR_BLOCK | FSR_ACQUIRE | (arrives ? FSR_RELEASE : 0);
  order_strong(reinterpret_cast<uintptr_t>(at), true, sizeof at->arrived, arrives ? kAtomic : kRead, bits);
}
void recorder_warp_release(unsigned warp, uint32_t lanes) {
  if (recording) shadow_release(warp, lanes);
}
void recorder_leave() {
  if (!recording) return;
  shadow_leave();
  statistics_flush();
}
void recorder_enter() {
  if (recording) shadow_enter();
}
void recorder_block_end() {
  if (!recording) return;
  settle();
  statistics_flush();
}

}  // namespace fsr

using namespace fsr;

extern "C" {

// ---- -fsanitize=thread
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}

#define FSR_SIZE(n)                                                                                            \
  void __tsan_read##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kRead, {0, true}, CALLER, 0); }     \
  void __tsan_write##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kWrite, {0, true}, CALLER, 0); }   \
  void __tsan_unaligned_read##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kRead, {}, CALLER, 0); }  \
  void __tsan_unaligned_write##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kWrite, {}, CALLER, 0); } \
  void __tsan_volatile_read##n(void* p) { volatile_access(p, n, kRead, CALLER); }                              \
  void __tsan_volatile_write##n(void* p) { volatile_access(p, n, kWrite, CALLER); }                            \
  void __tsan_unaligned_volatile_read##n(void* p) { volatile_access(p, n, kRead, CALLER); }                    \
  void __tsan_unaligned_volatile_write##n(void* p) { volatile_access(p, n, kWrite, CALLER); }
FSR_SIZE(1)
FSR_SIZE(2)
FSR_SIZE(4)
FSR_SIZE(8)
FSR_SIZE(16)
#undef FSR_SIZE

void __tsan_read_range(void* p, size_t n) { range(reinterpret_cast<uintptr_t>(p), n, kRead, CALLER); }
void __tsan_write_range(void* p, size_t n) { range(reinterpret_cast<uintptr_t>(p), n, kWrite, CALLER); }
void* __tsan_memcpy(void* to, const void* from, size_t n) {
  range(reinterpret_cast<uintptr_t>(from), n, kRead, CALLER);
  range(reinterpret_cast<uintptr_t>(to), n, kWrite, CALLER);
  return std::memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, size_t n) {
  range(reinterpret_cast<uintptr_t>(from), n, kRead, CALLER);
  range(reinterpret_cast<uintptr_t>(to), n, kWrite, CALLER);
  return std::memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, size_t n) {
  range(reinterpret_cast<uintptr_t>(to), n, kWrite, CALLER);
  return std::memset(to, value, n);
}

// The atomic operations behind fsr_atomic_update, where the compiler turns them into calls (g++): only performed,
// since fsr_note_atomic has told of them.
#define FSR_ATOMIC(bits, T)                                                                                        \
  T __tsan_atomic##bits##_load(const volatile T* p, int) { return *p; }                                            \
  void __tsan_atomic##bits##_store(volatile T* p, T v, int) { *p = v; }                                            \
  T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) { T old = *p; *p = v; return old; }                    \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) { T old = *p; *p = static_cast<T>(old + v); return old; } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* p, T v, int) { T old = *p; *p = static_cast<T>(old - v); return old; } \
  T __tsan_atomic##bits##_fetch_and(volatile T* p, T v, int) { T old = *p; *p = old & v; return old; }             \
  T __tsan_atomic##bits##_fetch_or(volatile T* p, T v, int) { T old = *p; *p = old | v; return old; }              \
  T __tsan_atomic##bits##_fetch_xor(volatile T* p, T v, int) { T old = *p; *p = old ^ v; return old; }             \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T v, int, int) {                   \
    T old = *p;                                                                                                    \
    bool same = old == *expected;                                                                                  \
    if (same) *p = v;                                                                                              \
    else *expected = old;                                                                                          \
    return same;                                                                                                   \
  }                                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T v, int a, int b) {                 \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, v, a, b);                                    \
  }
FSR_ATOMIC(8, uint8_t)
FSR_ATOMIC(16, uint16_t)
FSR_ATOMIC(32, uint32_t)
FSR_ATOMIC(64, uint64_t)
FSR_ATOMIC(128, unsigned __int128)
#undef FSR_ATOMIC
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

// ---- -fsanitize=bounds, alignment, shift-exponent, float-cast-overflow: what the compiler knows of the language
struct Place {
  const char* file;
  uint32_t line, column;
  int here() const { return file && std::strstr(file, "candidate.cu") ? static_cast<int>(line) : 0; }
};
struct PlaceAndType {
  Place place;
  const uint16_t* type;  // kind, info, then the name
  const char* name() const { return reinterpret_cast<const char*>(type + 2); }
};
void __ubsan_handle_out_of_bounds(PlaceAndType* data, uintptr_t index) {
  if (!recording) return;
  char text[160];
  std::snprintf(text, sizeof text, "index %lld in an array of type %s", static_cast<long long>(index), data->name());
  report(kBounds, nullptr, 0, CALLER, data->place.here(), 0, text);
  raise(kOutOfBounds, data->place.here(), "%s", text);
}
void __ubsan_handle_out_of_bounds_abort(PlaceAndType* data, uintptr_t index) { __ubsan_handle_out_of_bounds(data, index); }

static void undefined(int kind, const PlaceAndType* data, uintptr_t pc, const char* what) {
  if (!recording) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s %s", what, data->name());
  report(kind, nullptr, 0, pc, data->place.here(), 0, text);
}
void __ubsan_handle_type_mismatch_v1(PlaceAndType* data, uintptr_t) {
  undefined(kMisaligned, data, CALLER, "an address that is not aligned for");
}
void __ubsan_handle_shift_out_of_bounds(PlaceAndType* data, uintptr_t, uintptr_t) {
  undefined(kUndefined, data, CALLER, "a shift by a negative count, or by all bits or more, of");
}
void __ubsan_handle_float_cast_overflow(PlaceAndType* data, uintptr_t) {
  undefined(kUndefined, data, CALLER, "a conversion of a value that the target type cannot hold, from");
}

// ---- -fsanitize-coverage=trace-pc: a basic block begins
void __sanitizer_cov_trace_pc() {
  if (recording) statistics_block(CALLER);
}

// ---- from the language headers
void fsr_note_strong(const volatile void* address, unsigned bytes, unsigned how, int line) {
  Access kind = (how & FSR_UPDATE) == FSR_UPDATE ? kAtomic : how & FSR_STORE ? kWrite : kRead;
  access(reinterpret_cast<uintptr_t>(address), bytes, kind, {how | FSR_STRONG}, CALLER, line);
}
void fsr_note_fence(unsigned how, int) {
  if (!recording) return;
  settle();
  order_fence(how);
}
void fsr_note_read_only(const void* address, unsigned bytes, int line) {
  if (order.watched) access(reinterpret_cast<uintptr_t>(address), bytes, kRead, {0, false, true}, CALLER, line);
}

void fsr_note_plain(const void* address, unsigned bytes, unsigned how, int line, const void* caller) {
  uintptr_t pc = caller ? reinterpret_cast<uintptr_t>(caller) : CALLER;
  if (bytes) access(reinterpret_cast<uintptr_t>(address), bytes, how & FSR_STORE ? kWrite : kRead, {0, true}, pc, line);
}
// Counted where the copy was issued; from here on the bytes are the thread's own.
void fsr_note_arrival(const void* address, unsigned bytes, int line) {
  if (!recording) return;
  settle();
  auto at = reinterpret_cast<uintptr_t>(address);
  if (Region* region = region_of(at, bytes, kWrite, CALLER, line))
    shadow_access(region, at, bytes, kWrite, {}, CALLER, line);
}
// All lanes have met for it, which is part of the operation itself.
void fsr_note_tensor(double operations) {
  if (!recording) return;
  launch.tensor += operations;
  launch.warp_syncs--;
}

// ---- from the child process
EXPORT void fsr_record_begin() {
  recording = false;
  statistics_reset();
  shadow_reset();
}

// Steps of the golden ratio: any number of them lies evenly over the blocks; coprime steps visit every one.
static uint64_t coprime_step(uint64_t count) {
  auto common = [](uint64_t a, uint64_t b) {
    while (b) {
      uint64_t r = a % b;
      a = b, b = r;
    }
    return a;
  };
  uint64_t step = static_cast<uint64_t>(static_cast<double>(count) * 0.6180339887498949) | 1;
  while (common(step, count) != 1) step++;
  return step;
}

static void begin_recorded(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block,
                           unsigned shared_bytes) {
  start_launch(entry, args, grid, block, shared_bytes);
  next_poison();
  statistics_reset();
  locals_reset();
  shadow_launch_start();
  for (unsigned i = 0; i < region_count; i++)
    if (regions[i].begin == reinterpret_cast<uintptr_t>(fsr_dynamic_shared)) regions[i].end = regions[i].begin + shared_bytes;
  accesses = 0;
}

struct RecordSummary {
  uint64_t executed;
  double barriers, warp_syncs, tensor;
};

// Blocks in the order of a sample: spread over the grid, the last one, where tails go wrong, once `last_place` is reached.
static uint64_t sample_inner, sample_step, last_place;
static uint64_t sampled_block(uint64_t place) {
  if (place >= sample_inner && place < last_place) last_place = place;
  if (place == last_place) return sample_inner;
  return (place - (place > last_place)) * sample_step % sample_inner;
}

// Runs one launch with everything recorded until `budget` accesses, on the first block of the grid, then on blocks
// spread over it, then on the last. The first and the last stand for themselves: a block with threads that have most
// of the work, or hardly any, is often one of them. `complete`: execute the rest unrecorded, for later launches.
// Each region's index in Site and FoundFault is the caller's.
EXPORT int fsr_record_launch(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block,
                             unsigned shared_bytes, uint64_t budget, int complete, RecordSummary* summary) {
  order = Order{};
  begin_recorded(entry, args, grid, block, shared_bytes);
  uint64_t total = limit, inner = total > 1 ? total - 1 : 1;
  sample_inner = inner, sample_step = coprime_step(inner), last_place = ~uint64_t{0};
  block_at = sampled_block;
  uint64_t marked = 1, previous = 0;
  auto run = [&](uint64_t upto) {
    recording = true;
    wanted = upto;
    bool good = run_blocks();
    recording = false;
    return good;
  };
  bool good = run(1);
  statistics_single();
  uint64_t of_first = accesses;
  double barriers0 = static_cast<double>(launch.barriers), syncs0 = static_cast<double>(launch.warp_syncs);
  double tensor0 = launch.tensor;
  statistics_mark();
  while (good && issued < inner && (issued < 2 || accesses - of_first < budget)) {
    good = run(issued + 1);
    if (!(issued & (issued - 1))) {
      previous = marked, marked = issued;
      statistics_mark();
    }
  }
  uint64_t executed = issued < inner ? issued : inner;
  double scale = executed < 2 ? 1.0 : static_cast<double>(inner - 1) / static_cast<double>(executed - 1);
  uint64_t barriers = launch.barriers, syncs = launch.warp_syncs;
  double tensor = launch.tensor;
  if (executed < inner) {
    statistics_scale(scale);
    statistics_extrapolate(static_cast<double>(executed), static_cast<double>(marked), static_cast<double>(previous),
                           static_cast<double>(inner));
    for (unsigned i = 0; i < region_count; i++) regions[i].check_defined &= regions[i].space == kShared;
  }
  if (good && issued < total) {
    if (last_place > issued) last_place = issued;
    good = run(issued + 1);
  }
  auto scaled = [&](double first, double sample, double all) { return first + (sample - first) * scale + (all - sample); };
  summary->barriers = scaled(barriers0, static_cast<double>(barriers), static_cast<double>(launch.barriers));
  summary->warp_syncs = scaled(syncs0, static_cast<double>(syncs), static_cast<double>(launch.warp_syncs));
  summary->tensor = scaled(tensor0, tensor, launch.tensor);
  summary->executed = issued;
  settle_doubts();
  if (complete && good) {
    wanted = total;
    good = run_blocks();
  }
  return good && !shared_overrun();
}

// ---- a launch in another order, watched for what depends on it

static constexpr uint64_t kMostPicked = 96;
static uint64_t watched_total, watched_step, picked[kMostPicked];

static void pick(uint64_t block) {
  for (uint64_t i = 0; i < wanted; i++)
    if (picked[i] == block) return;  // run twice, it would meet itself
  picked[wanted++] = block;
}

// Blocks each with its neighbours in x and y: the first, the last, and others between.
static void pick_blocks(uint64_t groups) {
  uint64_t down = fsr_grid_size::x > 1 && fsr_grid_size::x < watched_total ? fsr_grid_size::x : 2;
  wanted = 0;
  for (uint64_t group = 0; group < groups; group++) {
    uint64_t first = group * (watched_total - 1 - down) / (groups - 1);
    pick(first);
    pick(first + 1);
    pick(first + down);
  }
}

static uint64_t watched_block(uint64_t place) {
  if (order.chosen) return picked[place];
  if (order.blocks == 1) return watched_total - 1 - place;
  return order.blocks == 2 ? place * watched_step % watched_total : place;
}

// The blocks that were not picked, in order: `issued` of the picked ones have run.
static uint64_t skipped;
static uint64_t other_block(uint64_t place) {
  uint64_t block = place - skipped;
  for (uint64_t i = 0; i < skipped; i++) block += picked[i] <= block;
  return block;
}

// `complete`: where only chosen blocks are watched, execute the others too, for later launches.
EXPORT int fsr_watch_launch(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block,
                            unsigned shared_bytes, const Order* how, int complete) {
  order = *how;
  begin_recorded(entry, args, grid, block, shared_bytes);
  watched_total = limit;
  watched_step = coprime_step(limit);
  block_at = watched_block;
  if (order.chosen > kMostPicked) order.chosen = kMostPicked;
  if (order.chosen >= 6 && 3 * order.chosen < limit) {
    pick_blocks(order.chosen / 3);
    limit = wanted;
  } else {
    order.chosen = 0;
    wanted = limit;
    if (complete && limit > kMostPicked) order.budget = 0;  // more than could be remembered
  }
  recording = true;
  bool good = run_blocks();
  recording = false;
  settle_doubts();
  if (complete && good && issued < watched_total) {
    skipped = issued;
    for (uint64_t i = 0; i < skipped && !order.chosen; i++) picked[i] = watched_block(i);
    order = Order{};
    for (uint64_t i = 1; i < skipped; i++)
      for (uint64_t j = i; j && picked[j] < picked[j - 1]; j--) std::swap(picked[j], picked[j - 1]);
    block_at = other_block;
    for (unsigned i = 0; i < region_count; i++) regions[i].check_defined &= regions[i].space == kShared;
    limit = wanted = watched_total;
    good = run_blocks();
  }
  return good && !shared_overrun();
}
}
