// The scheduler: runs the threads of one block, each until it waits.
//
// Threads are started one after the other on one stack. As long as none waits that is a plain loop. A thread that
// waits keeps the stack, and the loop goes on with the next thread on a fresh one, so kernels without barriers pay
// nothing for kernels with them. Whoever parks picks the next thread and switches to it directly.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "state.h"

unsigned fsr_thread_index::x, fsr_thread_index::y, fsr_thread_index::z;
unsigned fsr_block_index::x, fsr_block_index::y, fsr_block_index::z;
unsigned fsr_block_size::x, fsr_block_size::y, fsr_block_size::z;
unsigned fsr_grid_size::x, fsr_grid_size::y, fsr_grid_size::z;
extern "C" {
unsigned fsr_thread;
}

namespace fsr {

Launch launch;
Thread threads[kMaxThreads];
Warp warps[kMaxWarps];
fsr_post posts[kMaxThreads];
uint3 indices[kMaxThreads];
StackPool stacks;

namespace {

fsr_post snapshot[kMaxWarps][kWarp];
void* main_sp;
unsigned free_stacks[kMaxThreads + 1], free_count;
unsigned current_stack;
bool failed;

[[noreturn]] void leave() {
  void* dropped;
  fsr_switch(&dropped, main_sp);
  __builtin_unreachable();
}

[[noreturn]] void pick_and_forget();

// Thread t is the one that runs from here on.
void become(unsigned t) {
  fsr_thread = t;
  fsr_thread_index::x = indices[t].x, fsr_thread_index::y = indices[t].y, fsr_thread_index::z = indices[t].z;
}

void run_threads() {
  while (launch.next < launch.threads) {
    unsigned t = launch.next++;
    become(t);
    launch.thread(launch.args);
    if (launch.alive) {  // some thread has waited: was it this one?
      Warp& w = warps[t / kWarp];
      uint32_t bit = 1u << (t % kWarp);
      if (w.alive & bit) {
        w.alive &= ~bit;
        launch.alive--;
      }
    }
  }
  pick_and_forget();
}

void resume(void** save, unsigned t) {
  warps[t / kWarp].ready &= ~(1u << (t % kWarp));
  become(t);
  if (save == &threads[t].sp) return;  // the last one to arrive is the first to go on
  current_stack = threads[t].stack;
  fsr_switch(save, threads[t].sp);
}

void start(void** save) {
  current_stack = free_stacks[--free_count];
  fsr_switch(save, stacks.fresh(current_stack, run_threads));
}

// All lanes that a mask names have arrived with that mask: let them go together.
uint32_t release_by_mask(unsigned index, Warp& w) {
  uint32_t released = 0;
  const Thread* t = threads + index * kWarp;
  for (uint32_t rest = w.waiting; rest;) {
    unsigned mask = t[__builtin_ctz(rest)].mask;
    uint32_t group = 0;
    for (uint32_t r = rest; r; r &= r - 1) {
      unsigned lane = static_cast<unsigned>(__builtin_ctz(r));
      group |= static_cast<uint32_t>(t[lane].mask == mask) << lane;
    }
    if (!(mask & w.alive & ~group)) released |= group;
    rest &= ~group;
  }
  if (!released) return 0;
  std::memcpy(snapshot[index], posts + index * kWarp, sizeof snapshot[index]);
  for (uint32_t rest = ~released; rest; rest &= rest - 1)
    std::memset(&snapshot[index][__builtin_ctz(rest)], 0xFB, sizeof(fsr_post));
  w.voted = w.votes & released;
  w.waiting &= ~released;
  w.votes &= ~released;
  return released;
}

// Nothing else in the warp moves: lanes that asked for the active mask at one line are converged.
uint32_t release_active(unsigned index, Warp& w) {
  if (!w.active) return 0;
  const Thread* t = threads + index * kWarp;
  int line = t[__builtin_ctz(w.active)].line;
  uint32_t group = 0;
  for (uint32_t rest = w.active; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    if (t[lane].line == line) group |= 1u << lane;
  }
  for (uint32_t rest = group; rest; rest &= rest - 1)
    threads[index * kWarp + static_cast<unsigned>(__builtin_ctz(rest))].mask = group;
  w.active &= ~group;
  w.voted = group;
  return group;
}

bool release_warp(unsigned index) {
  Warp& w = warps[index];
  if (launch.next < launch.threads && launch.next / kWarp <= index) return false;  // lanes not started yet
  uint32_t released = w.waiting ? release_by_mask(index, w) : 0;
  if (!released) released = release_active(index, w);
  if (!released) return false;
  w.ready |= released;
  launch.warp_syncs++;
  recorder_warp_release(index, released);
  return true;
}

void release_barrier() {
  int line = 0;
  launch.count = launch.any = 0;
  launch.all = 1;
  for (unsigned i = 0; i < launch.warps; i++) {
    for (uint32_t rest = warps[i].barrier; rest; rest &= rest - 1) {
      const Thread& t = threads[i * kWarp + static_cast<unsigned>(__builtin_ctz(rest))];
      if (!line) line = t.line;
      if (t.line != line)
        raise(kDivergentBarrier, t.line, "threads of one block wait at different barriers: lines %d and %d", line,
              t.line);
      launch.count += t.predicate != 0;
      launch.all &= t.predicate != 0;
      launch.any |= t.predicate != 0;
    }
    if (warps[i].barrier) launch.barriers++;
    warps[i].ready |= warps[i].barrier;
    warps[i].barrier = 0;
  }
  launch.barrier = 0;
  recorder_barrier();
}

[[noreturn]] void deadlock() {
  int at_barrier = 0, at_warp = 0;
  unsigned barrier_threads = launch.barrier, warp_threads = 0;
  for (unsigned i = 0; i < launch.warps; i++) {
    if (warps[i].barrier) at_barrier = threads[i * kWarp + static_cast<unsigned>(__builtin_ctz(warps[i].barrier))].line;
    if (warps[i].waiting) at_warp = threads[i * kWarp + static_cast<unsigned>(__builtin_ctz(warps[i].waiting))].line;
    warp_threads += static_cast<unsigned>(__builtin_popcount(warps[i].waiting));
  }
  raise(kDivergentBarrier, at_warp ? at_warp : at_barrier,
        "deadlock: %u threads wait at the block barrier (line %d), %u for lanes of their warp that never come (line %d)",
        barrier_threads, at_barrier, warp_threads, at_warp);
}

// Continues with another thread; `save` receives the caller's stack pointer. `here` is the warp to stay in while it
// has something to do, `after` the lane to look behind first (so that threads that spin and yield take turns).
void pick(void** save, unsigned here, unsigned after, bool yielding) {
  for (;;) {
    uint32_t behind = after < kWarp - 1 ? warps[here].ready & (~0u << (after + 1)) : 0;
    if (!behind && !yielding) behind = warps[here].ready;
    if (behind) return resume(save, here * kWarp + static_cast<unsigned>(__builtin_ctz(behind)));
    if (launch.next < launch.threads && launch.next / kWarp <= here) return start(save);
    if (release_warp(here)) {
      after = kWarp;
      yielding = false;
      continue;
    }
    if (launch.next < launch.threads) return start(save);
    bool found = false;
    for (unsigned step = 1; step <= launch.warps && !found; step++) {
      unsigned other = (here + step) % launch.warps;
      if (warps[other].ready || release_warp(other)) here = other, found = true;
    }
    if (found) {
      after = kWarp;
      yielding = false;
      continue;
    }
    if (!launch.alive) leave();
    if (launch.barrier != launch.alive) deadlock();
    release_barrier();
    here = 0;
    after = kWarp;
  }
}

[[noreturn]] void pick_and_forget() {
  free_stacks[free_count++] = current_stack;
  void* dropped;
  pick(&dropped, fsr_thread / kWarp, fsr_thread % kWarp, false);
  __builtin_unreachable();
}

// Parks the calling thread. The caller has put it into the set that it waits in.
void park(int line, bool yielding = false) {
  unsigned t = fsr_thread;
  Warp& w = warps[t / kWarp];
  uint32_t bit = 1u << (t % kWarp);
  if (!(w.alive & bit)) {
    w.alive |= bit;
    launch.alive++;
    threads[t].stack = current_stack;
  }
  threads[t].line = line;
  pick(&threads[t].sp, t / kWarp, t % kWarp, yielding);
}

void barrier(int predicate, int line) {
  warps[fsr_thread / kWarp].barrier |= 1u << (fsr_thread % kWarp);
  threads[fsr_thread].predicate = predicate;
  launch.barrier++;
  park(line);
}

void wait_for(unsigned mask, int predicate, int line) {
  uint32_t bit = 1u << (fsr_thread % kWarp);
  if (!(mask & bit))
    raise(kDivergentBarrier, line, "lane %u waits for lanes 0x%08x of its warp, a mask without itself",
          fsr_thread % kWarp, mask);
  Warp& w = warps[fsr_thread / kWarp];
  threads[fsr_thread].mask = mask;
  w.waiting |= bit;
  if (predicate) w.votes |= bit;
  park(line);
}

}  // namespace

void raise(FaultKind kind, int line, const char* format, ...) {
  fault->kind = kind;
  fault->line = line;
  fault->thread = fsr_thread;
  name_block(fault->block);
  va_list rest;
  va_start(rest, format);
  std::vsnprintf(fault->text, sizeof fault->text, format, rest);
  va_end(rest);
  failed = true;
  leave();
}

bool run_block() {
  failed = false;
  launch.next = launch.alive = launch.barrier = 0;
  std::memset(warps, 0, sizeof(Warp) * launch.warps);
  if (free_count != stacks.count) {  // first launch, or a fault dropped parked threads
    for (free_count = 0; free_count < stacks.count; free_count++)
      free_stacks[free_count] = stacks.count - 1 - free_count;
  }
  recorder_block_start();
  start(&main_sp);
  recorder_block_end();
  return !failed;
}

}  // namespace fsr

using namespace fsr;

extern "C" {

void fsr_syncthreads(int line) { barrier(0, line); }
int fsr_syncthreads_count(int predicate, int line) { return barrier(predicate, line), launch.count; }
int fsr_syncthreads_and(int predicate, int line) { return barrier(predicate, line), launch.all; }
int fsr_syncthreads_or(int predicate, int line) { return barrier(predicate, line), launch.any; }

void fsr_syncwarp(unsigned mask, int line) { wait_for(mask, 0, line); }

const fsr_post* fsr_warp_exchange(const void* value, unsigned bytes, unsigned mask, int line) {
  std::memcpy(posts[fsr_thread].bytes, value, bytes);
  wait_for(mask, 0, line);
  return snapshot[fsr_thread / kWarp];
}

unsigned fsr_ballot(unsigned mask, int predicate, int line) {
  wait_for(mask, predicate, line);
  return warps[fsr_thread / kWarp].voted & mask;
}

unsigned fsr_activemask(int line) {
  warps[fsr_thread / kWarp].active |= 1u << (fsr_thread % kWarp);
  park(line);
  return warps[fsr_thread / kWarp].voted;
}

void fsr_yield(int line) {
  static unsigned calls;
  if (++calls % 256) return;
  warps[fsr_thread / kWarp].ready |= 1u << (fsr_thread % kWarp);
  park(line, true);
}

void fsr_trap(const char* what, int line) { raise(kTrap, line, "%s", what); }
void fsr_unsupported(const char* what, int line) {
  raise(kUnsupported, line, "%s cannot be executed on the host device", what);
}
}
