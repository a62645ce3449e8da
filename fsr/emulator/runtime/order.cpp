// Which accesses happen before which: the PTX memory model's causality order (PTX ISA, "Memory Consistency Model").
//
// Inside a block, order comes from block barriers (epochs) and, inside a warp, from __syncwarp (vector clocks of its
// lanes). Between threads otherwise, and between blocks, it comes from synchronisation: a release pattern (a release
// operation, or a fence and then a strong write) that an acquire pattern reads from (an acquire operation, or a strong
// read and then a fence), at scopes that hold both threads. Read-modify-writes pass on what they read.
//
// Beyond the letter of PTX, two habits that NVIDIA's own samples rely on are taken as right: a fence before a
// read-modify-write of the same thread serves both sides of it, and a block barrier hands fences (and what strong reads
// have seen) on to the other threads of the block.
#include <cstring>

#include "knowledge.h"
#include "recorder.h"

namespace fsr {

Stamp present;
uint32_t (*present_clocks)[kWarp];
uint32_t launch_first = 1;

namespace {

// By scope: [0] what threads of the block may rely on, [1] what threads of the device may.
struct Mind {
  View* view;          // what happens before the thread's next access
  View* released[2];   // what its next strong write passes on: what was known at its last fence of that scope
  View* heard[2];      // what strong reads have seen, for its next fence of that scope
};

// A block's threads. A null field of `own` means that of `common`, which all of the block knew at its last barrier.
struct Minds {
  uint32_t block, epoch;
  bool apart, clocks_used;
  Mind common, own[kMaxThreads];
  uint32_t clocks[kMaxThreads][kWarp];  // clocks[t][l]: what thread t knows of lane l of its warp
};

Minds minds[kMaxFlights];
Minds* here = minds;
uint32_t blocks_seen;

// A location of strong accesses: what the last write to it (and the chain of updates behind it) passes on.
struct Location {
  View* passed[2];
  uint32_t block;      // passed[0] is for this block's threads
  Stamp writer;
  unsigned char before[8];  // what the last write replaced
};
Table<Location, 17> locations;

struct Seen {
  Stamp writer;
  uint32_t times;
};
Table<Seen, 17> sightings;  // by location and thread: which write it has seen, or how often it has missed it

// Fences are sequentially consistent: a thread that fences after another's fence sees what that thread wrote before it.
struct Fences {
  uint64_t at[2];      // epoch << 32 | clock before the last two fences of a thread
  uint64_t turn[2];    // when, in the order of all fences
};
Table<Fences, 17> fences;
uint64_t fence_turns;

template <class Get>
View* mind(Get get) {
  View* own = get(here->own[fsr_thread]);
  return own ? own : get(here->common);
}
View* view_now() {
  return mind([](Mind& m) { return m.view; });
}
void set(View*& field, View* value) {
  field = value;
  here->apart |= value != nullptr;
}

void be_present() {
  present = static_cast<Stamp>(here->block) << 41 | static_cast<Stamp>(here->epoch) << 25;
  present_clocks = here->clocks;
}

uint32_t& clock_now() { return here->clocks[fsr_thread][fsr_thread % kWarp]; }
void tick() {
  if (clock_now() < kLastClock) clock_now()++;
  here->clocks_used = true;
}
uint64_t moment() { return static_cast<uint64_t>(here->epoch) << 32 | clock_now(); }

// What the thread knows now, itself included.
View* snapshot() {
  Known known[kWarp + 1];
  unsigned count = 0, warp = fsr_thread / kWarp * kWarp;
  known[count++] = {static_cast<uint64_t>(here->block) << 11, here->epoch};
  for (unsigned l = 0; l < kWarp; l++)
    if (uint32_t clock = here->clocks[fsr_thread][l])
      known[count++] = {name_thread(here->block, warp + l), static_cast<uint64_t>(here->epoch) << 32 | clock};
  return learn(view_now(), known, count);
}

void hear(unsigned scope, View* passed) {
  if (!passed) return;
  View* old = mind([scope](Mind& m) { return m.heard[scope]; });
  View* grown = join(old, passed);
  if (grown != old) set(here->own[fsr_thread].heard[scope], grown);
}

void acquire(View* passed) {
  View* old = view_now();
  View* grown = join(old, passed);
  if (grown != old) set(here->own[fsr_thread].view, grown);
}

void merge(View*& into, View* other) { into = join(into, other); }
void merge(Mind& into, const Mind& other) {
  merge(into.view, other.view);
  for (int s = 0; s < 2; s++) merge(into.released[s], other.released[s]), merge(into.heard[s], other.heard[s]);
}

uintptr_t place_of(uintptr_t address, bool shared) {
  return shared ? address ^ static_cast<uintptr_t>(here->block) << 42 : address;
}

uint64_t me() { return name_thread(here->block, fsr_thread); }

}  // namespace

uint64_t place_and_thread(uintptr_t address, bool shared, Stamp whose) {
  return place_of(address, shared) * 2048 + name_thread(block_of(whose), thread_of(whose)) * 0x9E3779B97F4A7C15ull;
}

bool earlier_launch(Stamp s) { return !s || block_of(s) < launch_first; }

bool known(Stamp s, bool shared) {
  uint32_t block = block_of(s), who = thread_of(s), epoch = epoch_of(s), clock = clock_of(s);
  if (block == here->block) {
    if (epoch < here->epoch || epoch == kLastEpoch || who == fsr_thread) return true;
    bool warp = who / kWarp == fsr_thread / kWarp;
    if (warp && (clock == kLastClock || here->clocks[fsr_thread][who % kWarp] >= clock)) return true;
  } else if (block < launch_first || shared || block == kLastBlock) {
    return true;
  }
  return views_exhausted() || covers(view_now(), block, who, epoch, clock);
}

void order_reset() {
  blocks_seen = 0;
  launch_first = 1;
}

void order_launch_start() {
  launch_first = blocks_seen + 1;
  for (Minds& m : minds) m.block = 0;  // their views are about to be forgotten
  forget_views();
  locations.clear();
  sightings.clear();
  fences.clear();
}

void order_block_start() {
  here = &minds[flight->slot];
  if (blocks_seen < kLastBlock) blocks_seen++;
  here->block = blocks_seen;
  here->epoch = 1;
  be_present();
  here->common = {};
  if (here->apart) std::memset(here->own, 0, sizeof here->own);
  here->apart = false;
  if (here->clocks_used || !here->clocks[0][0]) {
    std::memset(here->clocks, 0, sizeof here->clocks);
    for (unsigned t = 0; t < kMaxThreads; t++) here->clocks[t][t % kWarp] = 1;
    here->clocks_used = false;
  }
}

uint32_t block_in(unsigned slot) { return minds[slot].block; }

void order_enter() {
  here = &minds[flight->slot];
  be_present();
}

void order_barrier() {
  if (here->epoch < kLastEpoch) here->epoch++;
  be_present();
  if (here->clocks_used) {
    std::memset(here->clocks, 0, launch.threads * sizeof here->clocks[0]);
    for (unsigned t = 0; t < launch.threads; t++) here->clocks[t][t % kWarp] = 1;
    here->clocks_used = false;
  }
  if (!here->apart) return;
  for (unsigned t = 0; t < launch.threads; t++) {
    merge(here->common, here->own[t]);
    here->own[t] = {};
  }
  here->apart = false;
}

// All blocks of the grid wait: everything so far happens before everything that follows.
void order_grid_barrier() {
  View* all = nullptr;
  for (unsigned i = 0; i < kMaxFlights; i++) {
    Minds& m = minds[i];
    if (m.block < launch_first) continue;
    here = &m;
    order_barrier();
    Known own{static_cast<uint64_t>(m.block) << 11, m.epoch};
    all = learn(join(all, m.common.view), &own, 1);
  }
  for (Minds& m : minds)
    if (m.block >= launch_first) m.common.view = join(m.common.view, all);
  order_enter();
}

void order_warp(unsigned warp, uint32_t lanes) {
  const Thread* threads = flight->threads + warp * kWarp;
  here->clocks_used = true;
  for (uint32_t rest = lanes; rest;) {
    const Thread& first = threads[__builtin_ctz(rest)];
    uint32_t group = first.mask & rest;
    if (!group) return;
    rest &= ~group;
    if (!first.orders) continue;
    uint32_t joined[kWarp] = {};
    Mind together = {};
    for (uint32_t g = group; g; g &= g - 1) {
      unsigned t = warp * kWarp + static_cast<unsigned>(__builtin_ctz(g));
      for (unsigned l = 0; l < kWarp; l++) joined[l] = here->clocks[t][l] > joined[l] ? here->clocks[t][l] : joined[l];
      if (here->apart) merge(together, here->own[t]);
    }
    for (uint32_t g = group; g; g &= g - 1) {
      unsigned lane = static_cast<unsigned>(__builtin_ctz(g)), t = warp * kWarp + lane;
      std::memcpy(here->clocks[t], joined, sizeof joined);
      if (here->clocks[t][lane] < kLastClock) here->clocks[t][lane]++;
      if (here->apart) merge(here->own[t], together);
    }
  }
}

void order_fence(uint32_t bits) {
  Mind& own = here->own[fsr_thread];
  bool device = !(bits & FSR_BLOCK);
  if (bits & FSR_ACQUIRE)
    for (int s = 0; s <= device; s++) acquire(mind([s](Mind& m) { return m.heard[s]; }));
  if (bits & FSR_RELEASE) {
    View* known = snapshot();
    set(own.released[0], known);
    if (device) set(own.released[1], known);
  }
  if (bits & FSR_SEQUENTIAL && device) {
    if (Fences* f = fences.find(me(), true)) {
      f->at[0] = f->at[1], f->turn[0] = f->turn[1];
      f->at[1] = moment(), f->turn[1] = ++fence_turns;
    }
  }
  tick();
}

void order_strong(uintptr_t address, bool shared, unsigned bytes, Access access, uint32_t bits) {
  int scope = !(bits & FSR_BLOCK);
  if (bits & FSR_SEQUENTIAL) order_fence(FSR_SEQUENTIAL | FSR_ACQUIRE | FSR_RELEASE | (bits & FSR_BLOCK));
  View* released[2] = {mind([](Mind& m) { return m.released[0]; }), mind([](Mind& m) { return m.released[1]; })};
  Location* at = locations.find(place_of(address, shared), access != kRead && (order.watched || released[0] || bits & FSR_RELEASE));
  if (at && access != kWrite) {
    View* near = at->block == here->block ? join(at->passed[0], at->passed[1]) : nullptr;
    View* far = scope ? at->passed[1] : nullptr;
    bool acquires = bits & FSR_ACQUIRE;
    hear(0, near);
    hear(1, far);
    if (acquires || (access == kAtomic && released[0])) acquire(near);
    if (acquires || (access == kAtomic && released[1])) acquire(far);
  }
  if (at && order.watched)
    if (Seen* seen = sightings.find(place_and_thread(address, shared, now(kWeak, false)), access == kAtomic))
      *seen = {at->writer, ~0u};
  if (!at || access == kRead) return;
  if (bits & FSR_RELEASE) {
    released[0] = released[1] = snapshot();
    tick();
  }
  if (!scope) released[1] = nullptr;
  bool chain = access == kAtomic;
  View* kept = chain && at->block == here->block ? at->passed[0] : nullptr;
  at->passed[0] = join(kept, released[0]);
  at->passed[1] = join(chain && scope ? at->passed[1] : nullptr, released[1]);
  at->block = here->block;
  at->writer = now(scope ? kOnDevice : kInBlock, false);
  if (bytes <= 8) std::memcpy(at->before, reinterpret_cast<const void*>(address), bytes);
}

bool stale_value(uintptr_t address, bool shared, unsigned bytes, unsigned char* value) {
  const Location* at = locations.find(place_of(address, shared), false);
  if (!at || !at->writer || happened_before(at->writer, false)) return false;
  uint64_t writer = name_thread(block_of(at->writer), thread_of(at->writer));
  const Fences *theirs = fences.find(writer, false), *ours = fences.find(me(), false);
  uint64_t written = static_cast<uint64_t>(epoch_of(at->writer)) << 32 | clock_of(at->writer);
  for (int i = 0; theirs && ours && i < 2; i++)
    if (theirs->turn[i] && theirs->at[i] >= written && ours->turn[1] > theirs->turn[i]) return false;
  Seen* seen = sightings.find(place_and_thread(address, shared, now(kWeak, false)), true);
  if (!seen) return false;
  if (seen->writer != at->writer) *seen = {at->writer, 0};
  if (seen->times >= order.stale) return false;
  seen->times++;
  std::memcpy(value, at->before, bytes);
  return true;
}

}  // namespace fsr
