// The scheduler: runs the threads of a block, each until it waits; and of several blocks, where they wait for each other
// or are to be seen in another order.
//
// Threads are started one after the other on one stack. As long as none waits that is a plain loop. A thread that
// waits keeps the stack, and the loop goes on with the next thread on a fresh one, so kernels without barriers pay
// nothing for kernels with them. Whoever parks picks the next thread and switches to it directly.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "api.h"
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
Flight* flight;
Order order;
bool scarce;
uint3 indices[kMaxThreads];
StackPool stacks;
unsigned current_stack;
uint64_t (*block_at)(uint64_t place);
uint64_t issued, wanted, limit;

namespace {

// Part of the image, where the recorder lets accesses pass: posts are read by a candidate's code.
Flight flights[kMaxFlights];
bool used[kMaxFlights];
void* main_sp;
unsigned free_stacks[kMaxStacks], free_count, opened_stacks;
unsigned under_way;       // flights in use
uint64_t stuck;           // threads gave way so often since anything happened that one could wait for
unsigned countdown;
uint64_t chance_state;
bool failed;

// splitmix64 (Steele, Lea, Flood 2014)
uint64_t chance() {
  uint64_t z = chance_state += 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

[[noreturn]] void leave() {
  void* dropped;
  fsr_switch(&dropped, main_sp);
  __builtin_unreachable();
}

[[noreturn]] void pick_and_forget();

// Thread t of the running block is the one that runs from here on.
void become(unsigned t) {
  fsr_thread = t;
  fsr_thread_index::x = indices[t].x, fsr_thread_index::y = indices[t].y, fsr_thread_index::z = indices[t].z;
}

void name_index() {
  fsr_block_index::x = flight->index.x, fsr_block_index::y = flight->index.y, fsr_block_index::z = flight->index.z;
}

// Whether a warp has lanes that were not started yet.
bool unstarted(unsigned warp) {
  if (flight->next >= launch.threads) return false;
  return order.backward ? warp * kWarp < launch.threads - flight->next : flight->next < (warp + 1) * kWarp;
}

unsigned first_lane(uint32_t lanes) {
  return static_cast<unsigned>(order.backward ? 31 - __builtin_clz(lanes) : __builtin_ctz(lanes));
}

void run_threads() {
  while (flight->next < launch.threads) {
    unsigned t = flight->next++;
    if (order.backward) t = launch.threads - 1 - t;
    become(t);
    launch.thread(launch.args);
    if (flight->alive) {  // some thread has waited: was it this one?
      Warp& w = flight->warps[t / kWarp];
      uint32_t bit = 1u << (t % kWarp);
      if (w.alive & bit) {
        w.alive &= ~bit;
        flight->alive--;
      }
    }
  }
  pick_and_forget();
}

void resume(void** save, unsigned t) {
  flight->warps[t / kWarp].ready &= ~(1u << (t % kWarp));
  become(t);
  if (save == &flight->threads[t].sp) return;  // the last one to arrive is the first to go on
  current_stack = flight->threads[t].stack;
  fsr_switch(save, flight->threads[t].sp);
}

void start(void** save) {
  if (!free_count) {
    if (opened_stacks == stacks.count) raise(kUnsupported, 0, "more than %u threads wait at once", stacks.count);
    open_stacks(stacks, opened_stacks, kMaxThreads);
    for (unsigned i = kMaxThreads; i; i--) free_stacks[free_count++] = opened_stacks + i - 1;
    opened_stacks += kMaxThreads;
  }
  current_stack = free_stacks[--free_count];
  fsr_switch(save, stacks.fresh(current_stack, run_threads));
}

// All lanes that a mask names have arrived with that mask: let them go together.
uint32_t release_by_mask(unsigned index, Warp& w) {
  uint32_t released = 0;
  const Thread* t = flight->threads + index * kWarp;
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
  fsr_post* seen = flight->snapshot[index];
  std::memcpy(seen, flight->posts + index * kWarp, sizeof flight->snapshot[index]);
  traced_copy(seen, flight->posts + index * kWarp, sizeof flight->snapshot[index]);
  for (uint32_t rest = ~released; rest; rest &= rest - 1) std::memset(&seen[__builtin_ctz(rest)], 0xFB, sizeof(fsr_post));
  w.voted = w.votes & released;
  w.waiting &= ~released;
  w.votes &= ~released;
  return released;
}

// Nothing else in the warp moves: lanes that asked for the active mask at one line are converged.
uint32_t release_active(unsigned index, Warp& w) {
  if (!w.active) return 0;
  Thread* t = flight->threads + index * kWarp;
  int line = t[__builtin_ctz(w.active)].line;
  uint32_t group = 0;
  for (uint32_t rest = w.active; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    if (t[lane].line == line) group |= 1u << lane;
  }
  for (uint32_t rest = group; rest; rest &= rest - 1) {
    t[__builtin_ctz(rest)].mask = group;
    t[__builtin_ctz(rest)].orders = false;
  }
  w.active &= ~group;
  w.voted = group;
  return group;
}

bool release_warp(unsigned index) {
  Warp& w = flight->warps[index];
  if (unstarted(index)) return false;
  uint32_t released = w.waiting ? release_by_mask(index, w) : 0;
  if (!released) released = release_active(index, w);
  if (!released) return false;
  w.ready |= released;
  launch.warp_syncs++;
  progress();
  recorder_warp_release(index, released);
  return true;
}

void release_barrier() {
  Flight& f = *flight;
  int line = 0;
  f.count = f.any = 0;
  f.all = 1;
  for (unsigned i = 0; i < launch.warps; i++) {
    for (uint32_t rest = f.warps[i].barrier; rest; rest &= rest - 1) {
      const Thread& t = f.threads[i * kWarp + static_cast<unsigned>(__builtin_ctz(rest))];
      if (!line) line = t.line;
      if (t.line != line)
        raise(kDivergentBarrier, t.line, "threads of one block wait at different barriers: lines %d and %d", line,
              t.line);
      f.count += t.predicate != 0;
      f.all &= t.predicate != 0;
      f.any |= t.predicate != 0;
    }
    if (f.warps[i].barrier) launch.barriers++;
    f.warps[i].ready |= f.warps[i].barrier;
    f.warps[i].barrier = 0;
  }
  f.barrier = f.at_grid = 0;
  progress();
}

[[noreturn]] void deadlock() {
  int at_barrier = 0, at_warp = 0;
  const Warp* warps = flight->warps;
  unsigned barrier_threads = flight->barrier, warp_threads = 0, named_threads = 0;
  for (unsigned i = 0; i < launch.warps; i++) {
    const Thread* t = flight->threads + i * kWarp;
    if (warps[i].barrier) at_barrier = t[__builtin_ctz(warps[i].barrier)].line;
    if (warps[i].waiting) at_warp = t[__builtin_ctz(warps[i].waiting)].line;
    warp_threads += static_cast<unsigned>(__builtin_popcount(warps[i].waiting));
    named_threads += static_cast<unsigned>(__builtin_popcount(warps[i].named));
    if (warps[i].named && !at_barrier) at_barrier = t[__builtin_ctz(warps[i].named)].line;
  }
  if (named_threads)
    raise(kDivergentBarrier, at_barrier, "deadlock: %u threads wait at a barrier with a number for others that never come",
          named_threads);
  raise(kDivergentBarrier, at_warp ? at_warp : at_barrier,
        "deadlock: %u threads wait at the block barrier (line %d), %u for lanes of their warp that never come (line %d)",
        barrier_threads, at_barrier, warp_threads, at_warp);
}

[[noreturn]] void hang(int line) {
  bool full = issued < limit && under_way >= order.resident;
  if (full && scarce && !order.chosen)
    raise(kStarved, line, "%u blocks wait for blocks that have not begun, and none has to begin before another ends", under_way);
  if (order.chosen || full)
    raise(kTooFewBlocks, line, "%u blocks wait for others, of which no more fit here at once", under_way);
  raise(kHang, line, "every thread of the %u blocks under way waits for something that never comes", under_way);
}

// ---------------------------------------------------------------- several blocks under way

bool may_begin(uint64_t up_to) { return issued < up_to && under_way < order.resident; }

// The next block is under way and the running one.
void begin() {
  if (under_way) {
    recorder_leave();
    share_out(flight, nullptr);
  }
  unsigned slot = 0;
  while (used[slot]) slot++;
  Flight& f = flights[slot];
  flight = &f;
  f.slot = slot;
  f.next = f.alive = f.barrier = f.at_grid = f.idle = 0;
  std::memset(f.named, 0, sizeof f.named);
  used[slot] = true;
  f.place = issued++;
  std::memset(f.warps, 0, sizeof(Warp) * launch.warps);
  uint64_t linear = block_at(f.place);
  f.index.x = static_cast<unsigned>(linear % fsr_grid_size::x);
  f.index.y = static_cast<unsigned>(linear / fsr_grid_size::x % fsr_grid_size::y);
  f.index.z = static_cast<unsigned>(linear / fsr_grid_size::x / fsr_grid_size::y);
  name_index();
  poison_shared();
  async_block_start();
  under_way++;
  recorder_block_start();
}

void enter(Flight* to) {
  if (to == flight) return;
  recorder_leave();
  share_out(used[flight->slot] ? flight : nullptr, to);
  flight = to;
  name_index();
  recorder_enter();
}

bool waits_for_grid(const Flight& f) { return f.at_grid && f.at_grid == f.alive && f.next == launch.threads; }

// Some other block that can go on, or null; the one that is to stand still comes last.
Flight* another() {
  unsigned from = order.quantum ? static_cast<unsigned>(chance()) % kMaxFlights : flight->slot + 1;
  Flight* last = nullptr;
  for (unsigned i = 0; i < kMaxFlights; i++) {
    unsigned slot = (from + i) % kMaxFlights;
    Flight* f = &flights[slot];
    if (!used[slot] || waits_for_grid(*f) || f == flight) continue;
    if (f->place + 1 != order.stalled || stuck > 64) return f;
    last = f;
  }
  return last;
}

void pick(void** save, unsigned here, unsigned after, bool yielding);

// Another block goes on; the running one keeps its state.
void pass_on(void** save) {
  flight->idle = 0;
  bool all_wait = stuck > 2 * under_way;
  if (may_begin(all_wait ? limit : wanted) && (order.quantum || all_wait)) {
    begin();
    return start(save);
  }
  bool stands = flight->place + 1 == order.stalled && stuck <= 64;
  Flight* to = stands || !order.quantum || chance() % 4 ? another() : nullptr;
  if (to) enter(to);
  unsigned here = order.quantum ? static_cast<unsigned>(chance() % launch.warps) : 0;
  pick(save, here, kWarp, false);
}

// All threads of the running block wait at the barrier of the grid. True: all blocks do, and they go on.
bool grid_barrier(void** save) {
  if (flight->at_grid != flight->alive) deadlock();
  unsigned waiting = 0;
  for (unsigned i = 0; i < kMaxFlights; i++) waiting += used[i] && waits_for_grid(flights[i]);
  if (waiting == limit) {
    Flight* here = flight;
    for (unsigned i = 0; i < kMaxFlights; i++) {
      if (!used[i]) continue;
      flight = &flights[i];
      release_barrier();
    }
    flight = here;
    recorder_grid_barrier();
    return true;
  }
  if (may_begin(limit)) {
    begin();
    start(save);
    return false;
  }
  Flight* to = another();
  if (!to) hang(flight->threads[fsr_thread].line);
  enter(to);
  pick(save, 0, kWarp, false);
  return false;
}

// A block has ended: the next one to go on, if any is under way.
void end_block() {
  recorder_block_end();
  used[flight->slot] = false;
  under_way--;
  progress();
  if (!under_way) leave();
  Flight* to = another();
  if (!to) hang(0);  // the others wait at the barrier of the grid
  enter(to);
}

// Continues with another thread; `save` receives the caller's stack pointer. `here` is the warp to stay in while it
// has something to do, `after` the lane to look behind first (so that threads that spin and yield take turns).
void pick(void** save, unsigned here, unsigned after, bool yielding) {
  for (;;) {
    Warp* warps = flight->warps;
    uint32_t behind = warps[here].ready;
    if (after < kWarp) {
      uint32_t later = behind & (order.backward ? (1u << after) - 1 : after < kWarp - 1 ? ~0u << (after + 1) : 0);
      behind = later || yielding ? later : behind;
    }
    if (behind) return resume(save, here * kWarp + first_lane(behind));
    if (unstarted(here)) return start(save);
    if (release_warp(here)) {
      after = kWarp;
      yielding = false;
      continue;
    }
    if (flight->next < launch.threads) return start(save);
    bool found = false;
    for (unsigned step = 1; step <= launch.warps && !found; step++) {
      unsigned other = (here + (order.backward ? launch.warps - step : step)) % launch.warps;
      if (warps[other].ready || release_warp(other)) here = other, found = true;
    }
    after = kWarp;
    if (found) {
      yielding = false;
      continue;
    }
    if (!flight->alive) {
      end_block();
    } else if (flight->barrier != flight->alive) {
      deadlock();
    } else if (flight->at_grid) {
      if (!grid_barrier(save)) return;
    } else {
      release_barrier();
      recorder_barrier();
    }
    here = order.backward ? launch.warps - 1 : 0;
  }
}

[[noreturn]] void pick_and_forget() {
  free_stacks[free_count++] = current_stack;
  void* dropped;
  pick(&dropped, fsr_thread / kWarp, fsr_thread % kWarp, false);
  __builtin_unreachable();
}

enum Parking { kWaits, kYields, kPasses };

// Parks the calling thread. The caller has put it into the set that it waits in.
void park(int line, Parking how = kWaits) {
  unsigned t = fsr_thread;
  Warp& w = flight->warps[t / kWarp];
  uint32_t bit = 1u << (t % kWarp);
  Thread& thread = flight->threads[t];
  if (!(w.alive & bit)) {
    w.alive |= bit;
    flight->alive++;
    thread.stack = current_stack;
  }
  thread.line = line;
  if (how == kPasses) return pass_on(&thread.sp);
  pick(&thread.sp, t / kWarp, t % kWarp, how == kYields);
}

void barrier(int predicate, int line) {
  flight->warps[fsr_thread / kWarp].barrier |= 1u << (fsr_thread % kWarp);
  flight->threads[fsr_thread].predicate = predicate;
  flight->barrier++;
  park(line);
}

void wait_for(unsigned mask, int predicate, int line, bool orders = false) {
  uint32_t bit = 1u << (fsr_thread % kWarp);
  if (!(mask & bit))
    raise(kDivergentBarrier, line, "lane %u waits for lanes 0x%08x of its warp, a mask without itself",
          fsr_thread % kWarp, mask);
  Warp& w = flight->warps[fsr_thread / kWarp];
  flight->threads[fsr_thread].mask = mask;
  flight->threads[fsr_thread].orders = orders;
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

void wait_named(unsigned name, int line) {
  flight->warps[fsr_thread / kWarp].named |= 1u << (fsr_thread % kWarp);
  flight->threads[fsr_thread].mask = name;
  park(line);
}

void release_named(unsigned name) {
  for (unsigned i = 0; i < launch.warps; i++) {
    Warp& w = flight->warps[i];
    uint32_t released = 0;
    for (uint32_t rest = w.named; rest; rest &= rest - 1) {
      unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
      released |= static_cast<uint32_t>(flight->threads[i * kWarp + lane].mask == name) << lane;
    }
    w.named &= ~released;
    w.ready |= released;
    launch.barriers += released != 0;
  }
  progress();
}

void progress() {
  stuck = 0;
  flight->idle = 0;
}

void give_way() {
  if (!order.quantum || --countdown) return;
  countdown = order.quantum == 1 ? 1 : 1 + static_cast<unsigned>(chance() % (2 * order.quantum - 1));
  flight->warps[fsr_thread / kWarp].ready |= 1u << (fsr_thread % kWarp);
  park(flight->threads[fsr_thread].line, kPasses);
}

void begin_blocks() {
  failed = false;
  issued = under_way = 0;
  stuck = 0;
  countdown = order.quantum;
  chance_state = order.seed;
  if (!order.resident) order.resident = 1;
  std::memset(used, 0, sizeof used);
  if (!opened_stacks) opened_stacks = kMaxThreads;
  if (free_count != opened_stacks) {  // first launch, or a fault dropped parked threads
    for (free_count = 0; free_count < opened_stacks; free_count++)
      free_stacks[free_count] = opened_stacks - 1 - free_count;
  }
}

bool run_blocks() {
  while (!failed && issued < wanted) {
    begin();
    start(&main_sp);
  }
  return !failed;
}

}  // namespace fsr

using namespace fsr;

extern "C" {

void fsr_syncthreads(int line) { barrier(0, line); }
int fsr_syncthreads_count(int predicate, int line) { return barrier(predicate, line), flight->count; }
int fsr_syncthreads_and(int predicate, int line) { return barrier(predicate, line), flight->all; }
int fsr_syncthreads_or(int predicate, int line) { return barrier(predicate, line), flight->any; }

void fsr_syncgrid(int line) {
  if (!order.cooperative) raise(kUnsupported, line, "a barrier of the grid needs a cooperative launch, which no plan asks for");
  flight->at_grid++;
  barrier(0, line);
}

void fsr_syncwarp(unsigned mask, int line) { wait_for(mask, 0, line, true); }

const fsr_post* fsr_warp_exchange(const void* value, unsigned bytes, unsigned mask, int line) {
  std::memcpy(flight->posts[fsr_thread].bytes, value, bytes);
  traced_copy(flight->posts[fsr_thread].bytes, value, bytes);
  wait_for(mask, 0, line);
  return flight->snapshot[fsr_thread / kWarp];
}

unsigned fsr_ballot(unsigned mask, int predicate, int line) {
  wait_for(mask, predicate, line);
  return flight->warps[fsr_thread / kWarp].voted & mask;
}

unsigned fsr_activemask(int line) {
  flight->warps[fsr_thread / kWarp].active |= 1u << (fsr_thread % kWarp);
  park(line);
  return flight->warps[fsr_thread / kWarp].voted;
}

// Where blocks run in turns, a thread that spins gives way often: it is not the time that counts there.
void fsr_yield(int line) {
  static unsigned calls;
  if (++calls % (order.watched ? 4 : 256)) return;
  flight->warps[fsr_thread / kWarp].ready |= 1u << (fsr_thread % kWarp);
  stuck++;
  if (order.watched && stuck > 100000) hang(line);
  park(line, ++flight->idle > 2 * flight->alive ? kPasses : kYields);
}

void fsr_misaligned(const void* address, unsigned bytes) {
  fault->pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - 1 - shared_segment.image;
  fault->address = reinterpret_cast<uintptr_t>(address);
  raise(kUnaligned, 0, "%u bytes are read or written at once at an address that is no multiple of that", bytes);
}
void fsr_trap(const char* what, int line) { raise(kTrap, line, "%s", what); }
void fsr_unsupported(const char* what, int line) {
  raise(kUnsupported, line, "%s cannot be executed on the host device", what);
}
}
