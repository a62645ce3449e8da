// State of the running launch, shared by the scheduler, the launcher and the recorder. One thread, so plain globals.
#pragma once
#include <cstddef>
#include <cstdint>

#define FSR_RUNTIME_IMPLEMENTATION
#include "fiber.h"
#include "fsr/runtime.h"

extern "C" {
extern unsigned fsr_thread;  // which the headers declare const (see there)
}

namespace fsr {

constexpr unsigned kMaxThreads = 1024, kWarp = 32, kMaxWarps = kMaxThreads / kWarp;
constexpr unsigned kDynamicShared = 256 * 1024;
constexpr unsigned kMaxFlights = 128;  // blocks under way at once

enum FaultKind : int32_t {
  kNone = 0,
  kDivergentBarrier = 1,
  kTrap = 2,
  kUnsupported = 3,
  kOutOfBounds = 4,
  kStackOverflow = 5,
  kArithmetic = 6,
  kIllegalInstruction = 7,
  kSharedOverrun = 8,
  kHang = 9,
  kTooFewBlocks = 10,  // threads wait for blocks beyond those that fit the device at once
  kUnaligned = 11,     // a vector at an address that is no multiple of its size
  kStarved = 12,       // blocks wait for others that are not let in before these have ended
};

// Where the child process tells the parent what went wrong; lives in memory that both map. Layout known to
// fsr/backends/host/abi.py.
struct FaultRecord {
  int32_t kind;
  int32_t line;      // 0: unknown, see pc
  uint64_t address;  // data address of an illegal access
  uint64_t pc;       // offset in the image of the faulting instruction, 0: outside of it
  int32_t writes;    // 1: the access was a write
  uint32_t thread;   // linear rank in the block
  uint32_t block[3];
  char text[200];
};

struct Thread {
  void* sp;
  unsigned stack;  // index in the pool
  int line;        // where it waits
  unsigned mask;   // lanes it waits for
  int predicate;
  bool orders;     // and whether memory is ordered when they have come: __syncwarp does, shuffles and votes do not
};

struct Warp {
  uint32_t alive;    // lanes parked at least once and not yet exited
  uint32_t ready;    // of these, free to run
  uint32_t barrier;  // waiting at a block barrier
  uint32_t waiting;  // waiting for lanes of their mask
  uint32_t active;   // waiting in fsr_activemask
  uint32_t named;    // waiting at a barrier with a number
  uint32_t votes;    // predicates of waiting lanes
  uint32_t voted;    // votes of the lanes released last
};

// A barrier with a number: how many threads have come since it let some go, and how many it waits for.
struct Named {
  unsigned arrived, expected;
};
constexpr unsigned kNamed = 16;

// A block under way.
struct Flight {
  unsigned next;     // how many of its threads were started
  unsigned alive;    // parked threads
  unsigned barrier;  // of these, waiting at the block barrier
  unsigned at_grid;  // and at the barrier of the grid (they count as waiting at the block's as well)
  int count, all, any;  // results of the barrier released last
  unsigned slot;        // its place in `flights`
  unsigned idle;        // threads that gave way since anything else happened here
  uint64_t place;       // in the launch's order
  uint3 index;
  unsigned char* shared;  // its shared memory while another block runs
  Thread threads[kMaxThreads];
  Warp warps[kMaxWarps];
  Named named[kNamed];
  fsr_post posts[kMaxThreads], snapshot[kMaxWarps][kWarp];
};

struct Launch {
  void (*thread)(void** args) = nullptr;
  void** args = nullptr;
  unsigned threads = 0, warps = 0, shared_bytes = 0;
  uint64_t barriers = 0, warp_syncs = 0;
  double tensor = 0;  // operations of tensor cores: see fsr_note_tensor
};

// In which order blocks start and who goes on when. Layout known to fsr/backends/host/abi.py.
struct Order {
  uint64_t seed;
  uint32_t resident;  // blocks under way at once, at most
  uint32_t quantum;   // another thread goes on after so many global accesses, on average; 0: only when one waits
  uint32_t stale;     // relaxed loads miss a store that is not ordered before them so many times
  uint32_t backward;  // threads of a block start from the last
  uint32_t blocks;    // 0: ascending, 1: descending, 2: mixed
  uint32_t cooperative;  // blocks may wait at a barrier of the grid
  uint32_t watched;   // 1: this order is looked at with every access recorded, and hangs are told
  uint32_t stalled;   // 1 + the place of a block that stands still after its first access until the others do; 0: none
  uint64_t chosen;    // execute only so many blocks, neighbours among them; 0: all
  uint64_t budget;    // start no more blocks after so many accesses; 0: no limit
};

// Where to go on after a fault at this place in the code; 0 where the fault stands. Null where no such place is known.
extern uintptr_t (*resume_at)(uintptr_t pc);
extern Launch launch;
extern Flight* flight;  // whose threads run
extern Order order;
extern bool scarce;  // fewer blocks may be under way than fit
extern uint3 indices[kMaxThreads];
extern StackPool stacks;
extern unsigned current_stack;  // of the pool: the one that the running thread's variables are on
extern FaultRecord* fault;

// Which block comes at a place of the order, and how many of the launch's blocks are to be executed (`wanted`) or may be
// brought in because blocks under way wait for them (`limit`).
extern uint64_t (*block_at)(uint64_t place);
extern uint64_t issued, wanted, limit;

// Ends the launch with a fault: control returns to run_blocks' caller, parked threads are dropped.
[[noreturn]] __attribute__((format(printf, 3, 4))) void raise(FaultKind kind, int line, const char* format, ...);

inline void name_block(uint32_t* block) {
  block[0] = fsr_block_index::x, block[1] = fsr_block_index::y, block[2] = fsr_block_index::z;
}

void begin_blocks();     // a launch begins
bool run_blocks();       // executes blocks until `wanted` of them were issued and all have ended. False: a fault
void give_way();         // before a global access: another thread may go on first
void wait_named(unsigned name, int line);  // the running thread waits until release_named of that barrier
void release_named(unsigned name);
void progress();         // something happened that a waiting thread may wait for
void share_out(Flight* from, Flight* to);  // exchanges what shared memory holds; `from` may be null
void poison_shared();
void async_block_start();  // no asynchronous copy is under way
void wgmma_block_start();  // and no product
void wgmma_arrived(const void* to, unsigned bytes);  // an asynchronous copy of this thread is complete

// Called by the scheduler in the instrumented build only.
#ifdef FSR_RECORD
void recorder_block_start();
void recorder_barrier();
void recorder_grid_barrier();
void recorder_named(const Named* at, bool arrives);  // the running thread arrives at a barrier with a number, or goes on
void recorder_warp_release(unsigned warp, uint32_t lanes);
void recorder_leave();      // another block's threads are about to run
void recorder_enter();      // and from here on they do
void recorder_block_end();
#else
inline void recorder_block_start() {}
inline void recorder_barrier() {}
inline void recorder_grid_barrier() {}
inline void recorder_named(const Named*, bool) {}
inline void recorder_warp_release(unsigned, uint32_t) {}
inline void recorder_leave() {}
inline void recorder_enter() {}
inline void recorder_block_end() {}
#endif

// In the traced build only: see tracer.cpp.
#ifdef FSR_TRACE
void traced_copy(void* to, const void* from, size_t bytes);
#else
inline void traced_copy(void*, const void*, size_t) {}
#endif

}  // namespace fsr
