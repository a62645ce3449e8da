// Where the instrumentation arrives: our own implementation of the callbacks that -fsanitize=thread,
// -fsanitize=bounds and -fsanitize-coverage=trace-pc insert, and the recorded launch.
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
  report(1, nullptr, address, pc, line, 0, text);
  raise(kOutOfBounds, line, "%s", text);  // the access itself would corrupt memory or kill the process
}

inline void access(uintptr_t address, unsigned bytes, Access kind, uintptr_t pc, int line) {
  if (!recording || stacks.holds(address)) return;
  settle();
  static Region* last;
  Region* region = last;
  if (!region || region >= regions + region_count || address < region->begin || address + bytes > region->end) {
    region = find_region(address, bytes);
    if (!region) {
      bool in_image = address >= shared_segment.image && address < shared_segment.image_end;
      bool dynamic = address - reinterpret_cast<uintptr_t>(fsr_dynamic_shared) < kDynamicShared;
      if (in_image && !dynamic) return;  // tables that the compiler made
      out_of_bounds(address, bytes, kind, pc, line);
    }
    last = region;
  }
  accesses++;
  statistics_add(region, address, bytes, kind, pc, line);
  shadow_access(region, address, bytes, kind, pc, line);
}

void range(uintptr_t address, size_t bytes, Access kind, uintptr_t pc) {
  while (bytes) {
    unsigned part = bytes >= 16 ? 16 : bytes >= 8 ? 8 : bytes >= 4 ? 4 : 1;
    access(address, part, kind, pc, 0);
    address += part;
    bytes -= part;
  }
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
void recorder_warp_release(unsigned warp, uint32_t lanes) {
  if (recording) shadow_release(warp, lanes);
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
  void __tsan_read##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kRead, CALLER, 0); }                \
  void __tsan_write##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kWrite, CALLER, 0); }              \
  void __tsan_unaligned_read##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kRead, CALLER, 0); }      \
  void __tsan_unaligned_write##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kWrite, CALLER, 0); }    \
  void __tsan_volatile_read##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kRead, CALLER, 0); }       \
  void __tsan_volatile_write##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kWrite, CALLER, 0); }     \
  void __tsan_unaligned_volatile_read##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kRead, CALLER, 0); } \
  void __tsan_unaligned_volatile_write##n(void* p) { access(reinterpret_cast<uintptr_t>(p), n, kWrite, CALLER, 0); }
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

// ---- -fsanitize=bounds: an index outside of an array whose size the compiler knows
struct BoundsData {
  const char* file;
  uint32_t line, column;
  const uint16_t* array_type;  // kind, info, then the name
};
void __ubsan_handle_out_of_bounds(BoundsData* data, uintptr_t index) {
  if (!recording) return;
  const char* type = reinterpret_cast<const char*>(data->array_type + 2);
  bool ours = data->file && std::strstr(data->file, "candidate.cu");
  int line = ours ? static_cast<int>(data->line) : 0;
  char text[160];
  std::snprintf(text, sizeof text, "index %lld in an array of type %s", static_cast<long long>(index), type);
  report(1, nullptr, 0, CALLER, line, 0, text);
  raise(kOutOfBounds, line, "%s", text);
}
void __ubsan_handle_out_of_bounds_abort(BoundsData* data, uintptr_t index) { __ubsan_handle_out_of_bounds(data, index); }

// ---- -fsanitize-coverage=trace-pc: a basic block begins
void __sanitizer_cov_trace_pc() {
  if (recording) statistics_block(CALLER);
}

// ---- from the language headers
void fsr_note_atomic(const volatile void* address, unsigned bytes, int line) {
  if (!recording) return;
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  access(at, bytes, kAtomic, CALLER, line);
  const Region* region = find_region(at, bytes);
  if (region && region->space != kShared) shadow_global_atomic();
}
void fsr_note_fence(int) {
  if (recording) shadow_fence();
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

struct RecordSummary {
  uint64_t executed;
  double barriers, warp_syncs;
};

// Runs one launch with everything recorded until `budget` accesses, on blocks spread over the grid, then the last
// block of the grid, which is where tails go wrong. `complete`: execute the rest unrecorded, for later launches.
// Each region's index in Site and FoundFault is the caller's.
EXPORT int fsr_record_launch(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block,
                             unsigned shared_bytes, uint64_t budget, int complete, RecordSummary* summary) {
  start_launch(entry, args, grid, block, shared_bytes);
  next_poison();
  statistics_reset();
  shadow_launch_start();
  for (unsigned i = 0; i < region_count; i++)
    if (regions[i].begin == reinterpret_cast<uintptr_t>(fsr_dynamic_shared)) regions[i].end = regions[i].begin + shared_bytes;
  accesses = 0;
  uint64_t total = static_cast<uint64_t>(grid[0]) * grid[1] * grid[2], executed = 0, at = 0;
  uint64_t inner = total > 1 ? total - 1 : 1;  // all but the last block, which comes at the end in any case
  uint64_t step = coprime_step(inner), marked = 0, previous = 0;
  uint8_t* done = complete ? static_cast<uint8_t*>(std::calloc(total / 8 + 1, 1)) : nullptr;
  bool good = true;
  auto run = [&](uint64_t index) {
    recording = true;
    good = run_block_at(index);
    recording = false;
    if (done) done[index / 8] |= static_cast<uint8_t>(1u << (index % 8));
  };
  while (good && executed < inner && (!executed || accesses < budget)) {
    run(at);
    executed++;
    at = (at + step) % inner;
    if (!(executed & (executed - 1))) {
      previous = marked, marked = executed;
      statistics_mark();
    }
  }
  double scale = static_cast<double>(inner) / static_cast<double>(executed);
  uint64_t barriers = launch.barriers, syncs = launch.warp_syncs;
  if (executed < inner) {
    statistics_scale(scale);
    statistics_extrapolate(static_cast<double>(executed), static_cast<double>(marked), static_cast<double>(previous),
                           static_cast<double>(inner));
    for (unsigned i = 0; i < region_count; i++) regions[i].check_defined &= regions[i].space == kShared;
  }
  if (good && inner < total) {
    run(total - 1);
    executed++;
  }
  summary->barriers = static_cast<double>(barriers) * scale + static_cast<double>(launch.barriers - barriers);
  summary->warp_syncs = static_cast<double>(syncs) * scale + static_cast<double>(launch.warp_syncs - syncs);
  summary->executed = executed;
  if (done)
    for (uint64_t i = 0; i < total && good; i++)
      if (!(done[i / 8] >> (i % 8) & 1)) good = run_block_at(i);
  std::free(done);
  return good && !shared_overrun();
}
}
